// The job file's words for its enumerations: one table each, used by the
// reader, the writer, error texts and whoever prints a choice.
#ifndef PENSTOCK_COORDINATOR_SPEC_ENUM_NAMES_H_
#define PENSTOCK_COORDINATOR_SPEC_ENUM_NAMES_H_

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

template <typename E>
struct EnumName {
  E value;
  absl::string_view name;
};

inline constexpr EnumName<ModelFamily> kModelFamilyNames[] = {
    {ModelFamily::kGpt2, "gpt2"}, {ModelFamily::kLlama, "llama"}};
inline constexpr EnumName<RopeScalingKind> kRopeScalingKindNames[] = {
    {RopeScalingKind::kNone, "default"},
    {RopeScalingKind::kLinear, "linear"},
    {RopeScalingKind::kLlama3, "llama3"}};
inline constexpr EnumName<DataFormat> kDataFormatNames[] = {
    {DataFormat::kText, "text"},
    {DataFormat::kJsonl, "jsonl"},
    {DataFormat::kNanogpt, "nanogpt"},
    {DataFormat::kLlmc, "llmc"},
    {DataFormat::kMegatron, "megatron"}};
inline constexpr EnumName<DataOrder> kDataOrderNames[] = {
    {DataOrder::kShuffled, "shuffled"}, {DataOrder::kSequential, "sequential"}};
// kFile is written `file:PATH`.
inline constexpr const auto& kScheduleKindNames = schedule::kNamedSchedules;
inline constexpr EnumName<Recompute> kRecomputeNames[] = {
    {Recompute::kNone, "none"},
    {Recompute::kFull, "full"},
    {Recompute::kSelective, "selective"}};
inline constexpr EnumName<PipelineMode> kPipelineModeNames[] = {
    {PipelineMode::kSync, "sync"}, {PipelineMode::kAsync2bw, "async-2bw"}};
inline constexpr EnumName<Precision> kPrecisionNames[] = {
    {Precision::kF32, "f32"}, {Precision::kBf16, "bf16"}};
inline constexpr EnumName<OptimizerKind> kOptimizerKindNames[] = {
    {OptimizerKind::kAdamW, "adamw"}, {OptimizerKind::kSgd, "sgd"}};
inline constexpr EnumName<OnNonfinite> kOnNonfiniteNames[] = {
    {OnNonfinite::kFail, "fail"}, {OnNonfinite::kSkip, "skip"}};
inline constexpr EnumName<LrKind> kLrKindNames[] = {
    {LrKind::kConstant, "constant"},
    {LrKind::kCosine, "cosine"},
    {LrKind::kLinear, "linear"}};
inline constexpr EnumName<RecoveryMode> kRecoveryModeNames[] = {
    {RecoveryMode::kReplica, "replica"},
    {RecoveryMode::kCheckpoint, "checkpoint"},
    {RecoveryMode::kNone, "none"}};
inline constexpr EnumName<DeviceKind> kDeviceKindNames[] = {
    {DeviceKind::kAuto, "auto"},
    {DeviceKind::kReference, "reference"},
    {DeviceKind::kCpu, "cpu"},
    {DeviceKind::kCuda, "cuda"},
    {DeviceKind::kVirtual, "virtual"}};

// What a table with rows of that kind is about.
template <typename Row>
using EnumOf = decltype(Row::value);

// The value's word in `names`, one of the tables above; "" if it has none.
template <typename Row, size_t N>
constexpr absl::string_view NameOf(const Row (&names)[N], EnumOf<Row> value) {
  for (const Row& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

template <typename Row, size_t N>
constexpr std::optional<EnumOf<Row>> ValueOf(const Row (&names)[N],
                                             absl::string_view name) {
  for (const Row& entry : names) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// `1f1b`, or `file:PATH`.
inline std::string ScheduleName(const PipelineSpec& pipeline) {
  if (pipeline.schedule == ScheduleKind::kFile) {
    return absl::StrCat("file:", pipeline.schedule_file);
  }
  return std::string(NameOf(kScheduleKindNames, pipeline.schedule));
}

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_ENUM_NAMES_H_
