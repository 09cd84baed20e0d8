// The optimizer's settings and one update of one tensor over device::Ops.
#ifndef PENSTOCK_SERVER_MODEL_OPTIMIZER_H_
#define PENSTOCK_SERVER_MODEL_OPTIMIZER_H_

#include <array>
#include <cstdint>

#include "server/device/ops.h"

namespace penstock::server::model {

enum class OptimizerKind { kAdamw, kSgd };

// Plain value, the same on every stage. What changes from step to step is in
// StepScalars.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamw;
  double beta1 = 0.9;  // adamw
  double beta2 = 0.95;
  float epsilon = 1e-8f;
  float momentum = 0;  // sgd; 0: no velocity is kept.
  float weight_decay = 0.1f;

  // Tensors of state per parameter: adamw 2, sgd 1 or 0.
  int state_tensors() const;
};

// What ReleaseStep brings, computed once in f64 by the coordinator and sent as
// f32 (docs/numerics.md).
struct StepScalars {
  float grad_scale = 1;        // min(1, clip / (norm + 1e-6)) / valid tokens
  float learning_rate = 0;     // Of this step.
  float bias_correction1 = 1;  // 1 - beta1^adam_t
  float bias_correction2 = 1;  // 1 - beta2^adam_t

  // In the order of device::UpdateScalar.
  std::array<float, device::kUpdateScalars> Packed() const;
};

// One tensor of one version. `state` has config.state_tensors() entries.
struct TensorVersion {
  device::Tensor weight;
  std::array<device::Tensor, 2> state;
};

// Enqueues after = update(before, gradient). The versions may not overlap.
struct UpdateArgs {
  device::Tensor scalars;  // f32 (device::kUpdateScalars), device memory.
  device::Tensor gradient;
  TensorVersion before;
  TensorVersion after;
  bool decays = false;
};
void EnqueueUpdate(device::Ops& ops, device::Stream& stream,
                   const OptimizerConfig& config, const UpdateArgs& args);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_OPTIMIZER_H_
