#include "server/model/parameters.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "server/device/finite.h"

namespace penstock::server::model {
namespace {

using device::DType;
using device::MemoryUse;
using device::Shape;
using device::Tensor;

constexpr int64_t kScalarBytes = device::kUpdateScalars * sizeof(float);

Tensor F32At(const device::Buffer& buffer, int64_t offset, const Shape& shape) {
  return Tensor(buffer.data() + offset, DType::kF32, shape);
}

// All of a buffer as f32; buffers are multiples of kAlignment.
Tensor Whole(const device::Buffer& buffer) {
  return F32At(buffer, 0, Shape({buffer.bytes() / 4}));
}

absl::Status CheckFinite(const ParameterSpec& spec, int64_t step,
                         absl::Span<const float> values) {
  const int64_t broken = device::CountNonFinite(values);
  if (broken == 0) return absl::OkStatus();
  return common::status::WithReason(
      absl::OutOfRangeError(
          absl::StrCat("the model is lost: ", broken, " of ", values.size(),
                       " values of ", spec.name, " after step ", step,
                       " are NaN or infinite; lower the learning rate")),
      common::status::kReasonNonfinite);
}

}  // namespace

Tensor LayerParameters::Value(int group) const {
  return store_->ValueOf(groups_[group]);
}

device::Weight LayerParameters::Weight(int group) const {
  return store_->WeightOf(groups_[group]);
}

Tensor LayerParameters::Gradient(int group) const {
  return store_->GroupGradientOf(groups_[group]);
}

device::Accumulate LayerParameters::Contribute(int group) const {
  return store_->Contribute(groups_[group]);
}

LayerParameters LayerParameters::From(int first) const {
  return LayerParameters(store_, groups_.subspan(first));
}

ParameterMemory ParameterStore::Predict(const device::Ops& ops,
                                        const Options& options) {
  return PlanParameters(ops, options.model, options.ranges, options.optimizer)
      .memory;
}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Create(
    device::Device& device, const Options& options) {
  RETURN_IF_ERROR(Validate(options.model));
  auto store = std::unique_ptr<ParameterStore>(
      new ParameterStore(device, options,
                         PlanParameters(device.ops(), options.model,
                                        options.ranges, options.optimizer)));
  RETURN_IF_ERROR(store->Allocate());
  return store;
}

ParameterStore::ParameterStore(device::Device& device, const Options& options,
                               ParameterPlan plan)
    : device_(device),
      optimizer_(options.optimizer),
      plan_(std::move(plan)),
      contributed_(plan_.groups.size(), false) {
  for (const HeldParameter& held : plan_.held) {
    if (held.owned) owned_.push_back(held.spec);
  }
}

ParameterStore::~ParameterStore() = default;

absl::Status ParameterStore::Allocate() {
  for (Version& version : versions_) {
    ASSIGN_OR_RETURN(version.weights, device_.Allocate(plan_.version_bytes,
                                                       MemoryUse::kParameters));
    for (int i = 0; i < optimizer_.state_tensors(); ++i) {
      ASSIGN_OR_RETURN(
          version.state[i],
          device_.Allocate(plan_.version_bytes, MemoryUse::kOptimizer));
    }
  }
  ASSIGN_OR_RETURN(gradients_, device_.Allocate(plan_.memory.gradients,
                                                MemoryUse::kGradients));
  ASSIGN_OR_RETURN(
      packed_, device_.Allocate(plan_.memory.packed, MemoryUse::kParameters));
  ASSIGN_OR_RETURN(step_,
                   device_.Allocate(plan_.memory.step, MemoryUse::kParameters));
  const int64_t sums = plan_.memory.step - Aligned(kScalarBytes);
  ASSIGN_OR_RETURN(pinned_scalars_, device_.Allocate(2 * Aligned(kScalarBytes),
                                                     MemoryUse::kPinnedHost));
  ASSIGN_OR_RETURN(pinned_sums_,
                   device_.Allocate(sums, MemoryUse::kPinnedHost));
  const int64_t staging =
      plan_.memory.pinned - 2 * Aligned(kScalarBytes) - sums;
  ASSIGN_OR_RETURN(staging_, device_.Allocate(staging, MemoryUse::kPinnedHost));
  return absl::OkStatus();
}

TensorVersion ParameterStore::VersionOf(const HeldParameter& held,
                                        const Version& version) const {
  TensorVersion tensors;
  tensors.weight = F32At(*version.weights, held.offset, held.spec.shape);
  for (int i = 0; i < optimizer_.state_tensors(); ++i) {
    tensors.state[i] = F32At(*version.state[i], held.offset, held.spec.shape);
  }
  return tensors;
}

Tensor ParameterStore::GradientOf(const HeldParameter& held) const {
  return F32At(*gradients_, held.offset, held.spec.shape);
}

Tensor ParameterStore::ValueOf(int group) const {
  const PlacedGroup& placed = plan_.groups[group];
  return F32At(*versions_[current_].weights, placed.value, placed.shape);
}

Tensor ParameterStore::GroupGradientOf(int group) const {
  const PlacedGroup& placed = plan_.groups[group];
  return F32At(*gradients_, placed.gradient, placed.shape);
}

device::Weight ParameterStore::WeightOf(int group) const {
  const PlacedGroup& placed = plan_.groups[group];
  device::Weight weight{.master = ValueOf(group), .layout = placed.layout};
  if (placed.packed_bytes > 0) {
    weight.packed =
        F32At(*packed_, placed.packed, Shape({(placed.packed_bytes + 3) / 4}));
  }
  return weight;
}

device::Accumulate ParameterStore::Contribute(int group) {
  const bool first = !contributed_[group];
  contributed_[group] = true;
  return first ? device::Accumulate::kStore : device::Accumulate::kAdd;
}

absl::Status ParameterStore::Load(device::Stream& stream, const Source& source,
                                  int64_t step, absl::Time deadline) {
  Version& version = versions_[current_];
  for (Version& old : versions_) old.step = -1;
  for (const HeldParameter& held : plan_.held) {
    const int64_t elements = held.spec.shape.elements();
    auto* values = reinterpret_cast<float*>(staging_->data());
    RETURN_IF_ERROR(source(held.spec, absl::MakeSpan(values, elements)));
    device_.CopyToDevice(stream, version.weights->data() + held.offset,
                         staging_->data(), elements * sizeof(float));
    RETURN_IF_ERROR(stream.Synchronize(deadline));
  }
  for (int i = 0; i < optimizer_.state_tensors(); ++i) {
    device_.ops().Fill(stream, {.y = Whole(*version.state[i]), .value = 0});
  }
  step_number_ = step;
  MakeCurrent(stream, current_);
  RETURN_IF_ERROR(stream.Synchronize(deadline));
  Completed();
  return absl::OkStatus();
}

absl::Status ParameterStore::ReadOwned(device::Stream& stream, What what,
                                       const Sink& sink,
                                       absl::Time deadline) const {
  for (const HeldParameter& held : plan_.held) {
    if (!held.owned) continue;
    const Tensor tensor = what == What::kWeights
                              ? VersionOf(held, versions_[current_]).weight
                              : GradientOf(held);
    device_.CopyToHost(stream, staging_->data(),
                       static_cast<const std::byte*>(tensor.data()),
                       tensor.bytes());
    RETURN_IF_ERROR(stream.Synchronize(deadline));
    RETURN_IF_ERROR(sink(
        held.spec,
        absl::MakeConstSpan(reinterpret_cast<const float*>(staging_->data()),
                            tensor.elements())));
  }
  return absl::OkStatus();
}

absl::Status ParameterStore::ReadWeights(device::Stream& stream,
                                         const Sink& sink,
                                         absl::Time deadline) const {
  return ReadOwned(stream, What::kWeights, sink, deadline);
}

absl::Status ParameterStore::ReadGradients(device::Stream& stream,
                                           const Sink& sink,
                                           absl::Time deadline) const {
  return ReadOwned(stream, What::kGradients, sink, deadline);
}

absl::StatusOr<std::vector<ParameterStore::TensorDigest>>
ParameterStore::Digests(device::Stream& stream, absl::Time deadline,
                        const std::function<absl::Status()>& stopped) const {
  std::vector<TensorDigest> digests;
  const Sink digest = [&](const ParameterSpec& spec,
                          absl::Span<const float> values) {
    if (stopped) RETURN_IF_ERROR(stopped());
    RETURN_IF_ERROR(CheckFinite(spec, step(), values));
    digests.push_back({.name = spec.name,
                       .index = spec.index,
                       .sha256 = common::digest::Sha256Of(absl::MakeConstSpan(
                           reinterpret_cast<const std::byte*>(values.data()),
                           values.size() * sizeof(float)))});
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReadWeights(stream, digest, deadline));
  return digests;
}

void ParameterStore::BeginStep() {
  contributed_.assign(contributed_.size(), false);
  combined_ = false;
}

Tensor ParameterStore::tied_head_gradient() const {
  CHECK_GE(plan_.tied_head_gradient, 0) << "no tied head on this rank ";
  return F32At(*gradients_, plan_.tied_head_gradient, plan_.tied_shape);
}

Tensor ParameterStore::tied_sum() const {
  CHECK_GE(plan_.tied_sum, 0) << "no tied embedding on this rank ";
  return F32At(*gradients_, plan_.tied_sum, plan_.tied_shape);
}

void ParameterStore::CombineTied(device::Stream& stream) {
  CHECK(!combined_) << "tied gradients combined twice in a step";
  combined_ = true;
  const Tensor sum = tied_sum();
  device_.ops().Add(stream, {.a = sum, .b = tied_head_gradient(), .y = sum});
}

void ParameterStore::EnqueueSumSquares(device::Stream& stream) {
  CHECK(plan_.tied_sum < 0 || combined_) << "CombineTied() comes first";
  std::byte* const sums = step_->data() + Aligned(kScalarBytes);
  int64_t index = 0;
  for (const HeldParameter& held : plan_.held) {
    if (!held.owned) continue;
    const Tensor sum(sums + index * sizeof(double), DType::kF64, Shape({1}));
    device_.ops().SumSquares(stream, {.x = GradientOf(held), .sum = sum});
    ++index;
  }
  device_.CopyToHost(stream, pinned_sums_->data(), sums,
                     index * static_cast<int64_t>(sizeof(double)));
}

absl::Span<const double> ParameterStore::sum_squares() const {
  return absl::MakeConstSpan(
      reinterpret_cast<const double*>(pinned_sums_->data()), owned_.size());
}

void ParameterStore::MakeCurrent(device::Stream& stream, int version) {
  current_ = version;
  for (int i = 0; i < static_cast<int>(plan_.groups.size()); ++i) {
    if (plan_.groups[i].packed_bytes == 0) continue;
    device_.ops().PackWeight(stream, WeightOf(i));
  }
}

void ParameterStore::Apply(device::Stream& stream, const StepScalars& scalars) {
  for (int i = 0; i < static_cast<int>(contributed_.size()); ++i) {
    CHECK(contributed_[i]) << "no gradient of group " << i << " in this step";
  }
  const std::array<float, device::kUpdateScalars> packed = scalars.Packed();
  std::byte* const pinned =
      pinned_scalars_->data() + current_ * Aligned(kScalarBytes);
  std::memcpy(pinned, packed.data(), kScalarBytes);
  device_.CopyToDevice(stream, step_->data(), pinned, kScalarBytes);

  const Version& before = versions_[current_];
  Version& after = versions_[1 - current_];
  after.step = -1;
  for (const HeldParameter& held : plan_.held) {
    EnqueueUpdate(device_.ops(), stream, optimizer_,
                  {.scalars = F32At(*step_, 0, Shape({device::kUpdateScalars})),
                   .gradient = GradientOf(held),
                   .before = VersionOf(held, before),
                   .after = VersionOf(held, after),
                   .decays = held.spec.decays()});
  }
  ++step_number_;
  MakeCurrent(stream, 1 - current_);
}

void ParameterStore::Skip(device::Stream& stream) {
  const Version& before = versions_[current_];
  Version& after = versions_[1 - current_];
  after.step = -1;
  device_.ops().Copy(stream,
                     {.x = Whole(*before.weights), .y = Whole(*after.weights)});
  for (int i = 0; i < optimizer_.state_tensors(); ++i) {
    device_.ops().Copy(
        stream, {.x = Whole(*before.state[i]), .y = Whole(*after.state[i])});
  }
  ++step_number_;
  current_ = 1 - current_;  // Equal weights: what is packed stays right.
}

absl::Status ParameterStore::ReturnTo(device::Stream& stream, int64_t step) {
  std::vector<int64_t> whole;
  for (int version = 0; version < 2; ++version) {
    if (versions_[version].step < 0) continue;
    whole.push_back(versions_[version].step);
    if (whole.back() != step) continue;
    step_number_ = step;
    MakeCurrent(stream, version);
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("version ", step, " is not held: whole are ",
                   whole.empty() ? "none" : absl::StrJoin(whole, " and ")));
}

LayerParameters ParameterStore::OfLayer(int64_t layer) {
  CHECK(layer >= 0 && layer < static_cast<int64_t>(plan_.layer_groups.size()) &&
        !plan_.layer_groups[layer].empty())
      << "layer " << layer << " is not on this rank";
  return LayerParameters(this, plan_.layer_groups[layer]);
}

}  // namespace penstock::server::model
