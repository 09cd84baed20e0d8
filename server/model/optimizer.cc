#include "server/model/optimizer.h"

namespace penstock::server::model {

int OptimizerConfig::state_tensors() const {
  if (kind == OptimizerKind::kAdamw) return 2;
  return momentum != 0 ? 1 : 0;
}

std::array<float, device::kUpdateScalars> StepScalars::Packed() const {
  std::array<float, device::kUpdateScalars> packed{};
  packed[device::kGradScale] = grad_scale;
  packed[device::kLearningRate] = learning_rate;
  packed[device::kBiasCorrection1] = bias_correction1;
  packed[device::kBiasCorrection2] = bias_correction2;
  return packed;
}

void EnqueueUpdate(device::Ops& ops, device::Stream& stream,
                   const OptimizerConfig& config, const UpdateArgs& args) {
  const float decay = args.decays ? config.weight_decay : 0;
  if (config.kind == OptimizerKind::kAdamw) {
    ops.Adamw(stream, {.scalars = args.scalars,
                       .gradient = args.gradient,
                       .weight = args.before.weight,
                       .moment1 = args.before.state[0],
                       .moment2 = args.before.state[1],
                       .next_weight = args.after.weight,
                       .next_moment1 = args.after.state[0],
                       .next_moment2 = args.after.state[1],
                       .beta1 = config.beta1,
                       .beta2 = config.beta2,
                       .epsilon = config.epsilon,
                       .weight_decay = decay});
    return;
  }
  ops.Sgd(stream, {.scalars = args.scalars,
                   .gradient = args.gradient,
                   .weight = args.before.weight,
                   .velocity = args.before.state[0],
                   .next_weight = args.after.weight,
                   .next_velocity = args.after.state[0],
                   .momentum = config.momentum,
                   .weight_decay = decay});
}

}  // namespace penstock::server::model
