#include "coordinator/dispatch/assembly.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/time/duration_text.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/command_stream.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/parameter_sizes.h"
#include "coordinator/spec/enum_names.h"

namespace penstock::coordinator::dispatch {
namespace {

using registry::StageEntry;

// No address space is larger; six of them together still fit a number.
constexpr int64_t kMostBytes = int64_t{1} << 57;

std::string PoolOf(const StageEntry& stage) {
  const std::string& pool = stage.registration.pool();
  return pool.empty() ? "default" : pool;
}

std::vector<const StageEntry*> Candidates(const spec::JobSpec& spec,
                                          const registry::Registry& registry,
                                          const StageLinks& links,
                                          const std::string& kind) {
  std::vector<const StageEntry*> free;
  for (const StageEntry* stage : registry.List()) {
    if (stage->state == v1::Stage::STATE_REGISTERED && stage->connected() &&
        !links.Aborting(stage->name()) &&
        PoolOf(*stage) == spec.scheduling.pool &&
        stage->registration.device().kind() == kind) {
      free.push_back(stage);
    }
  }
  return free;
}

// In order of preference. (No stage registers as "cuda" yet: server/backends.cc
// has no such kind.)
std::vector<std::string> KindsFor(spec::DeviceKind device) {
  if (device == spec::DeviceKind::kAuto) return {"cuda", "cpu"};
  return {std::string(spec::NameOf(spec::kDeviceKindNames, device))};
}

v1::Chunk ChunkOf(const planner::StageLayers& layers, int stage) {
  v1::Chunk chunk;
  chunk.set_stage(stage);
  chunk.set_first_block(layers.first_block);
  chunk.set_end_block(layers.end_block);
  chunk.set_embedding(layers.embedding);
  chunk.set_head(layers.head);
  return chunk;
}

// To the nanosecond, which is nearer than a cut of what a double cannot hold.
google::protobuf::Duration DurationOf(double seconds) {
  return common::time::ToProto(absl::Nanoseconds(std::llround(seconds * 1e9)));
}

v1::ModelledTimes TimesOf(const schedule::StageTimes& times) {
  using schedule::Op;
  v1::ModelledTimes modelled;
  *modelled.mutable_forward() = DurationOf(times.of(Op::kForward));
  *modelled.mutable_backward_input() = DurationOf(times.of(Op::kBackwardInput));
  *modelled.mutable_backward_weight() =
      DurationOf(times.of(Op::kBackwardWeight));
  *modelled.mutable_backward() = DurationOf(times.of(Op::kBackward));
  return modelled;
}

}  // namespace

Crew ChooseCrew(const spec::JobSpec& spec, const registry::Registry& registry,
                const StageLinks& links) {
  const size_t ranks = spec.pipeline.stages.value_or(1);
  Crew crew;
  for (const std::string& kind : KindsFor(spec.device)) {
    const std::vector<const StageEntry*> free =
        Candidates(spec, registry, links, kind);
    crew = Crew{.device_kind = kind,
                .protocol = registry.options().highest_protocol};
    for (const StageEntry* stage : free) {
      if (crew.members.size() == ranks) break;
      crew.members.push_back(
          {.name = stage->name(),
           .host = stage->host(),
           .data_address = stage->registration.data_address(),
           .device = stage->registration.device()});
      crew.protocol = std::min<int>(crew.protocol,
                                    stage->registration.protocol().highest());
    }
    if (crew.members.size() == ranks) break;
  }
  return crew;
}

std::string DescribeContact(const StageEntry& stage,
                            common::time::MonotonicTime now) {
  const absl::Duration ago = now - stage.last_contact;
  const std::string heard =
      ago >= absl::Milliseconds(100)
          ? absl::StrCat("last heard of ", common::time::DurationText(ago),
                         " ago")
          : "heard of just now";
  if (stage.lost()) {
    return absl::StrCat("LOST, ", heard, ": ", stage.cause.message());
  }
  return stage.connected() ? heard : absl::StrCat("not connected, ", heard);
}

std::string DescribeWanted(const spec::JobSpec& spec,
                           const registry::Registry& registry,
                           const StageLinks& links,
                           common::time::MonotonicTime now) {
  const std::vector<std::string> kinds = KindsFor(spec.device);
  std::vector<std::string> free, others;
  for (const StageEntry* stage : registry.List()) {
    const v1::RegisterStageRequest& registration = stage->registration;
    const std::string& kind = registration.device().kind();
    const std::string pool = PoolOf(*stage);
    std::string why;  // It is not free.
    if (stage->lost()) {
      why = DescribeContact(*stage, now);
    } else if (pool != spec.scheduling.pool) {
      why = absl::StrCat("pool ", pool);
    } else if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      why = absl::StrCat("device ", kind);
    } else if (!stage->connected()) {
      why = DescribeContact(*stage, now);
    } else if (!stage->job_id.empty()) {
      why = absl::StrCat("works for ", stage->job_id);
    } else if (stage->state != v1::Stage::STATE_REGISTERED ||
               links.Aborting(stage->name())) {
      why = "not ready";
    }
    if (why.empty()) {
      free.push_back(stage->name());
    } else {
      others.push_back(absl::StrCat(stage->name(), " (", why, ")"));
    }
  }
  return absl::StrCat(
      spec.pipeline.stages.value_or(1), " stages of pool ",
      spec.scheduling.pool, ", device ", absl::StrJoin(kinds, " or "),
      "; free: ", free.empty() ? "none" : absl::StrJoin(free, ", "),
      others.empty() ? "" : "; not free: ", absl::StrJoin(others, ", "));
}

absl::Status AgreeOnNumerics(const registry::Registry& registry, Crew& crew) {
  const auto ids = [&](const std::string& name) -> const auto& {
    return registry.Find(name)->registration.numerics_ids();
  };
  // Each lists its ids best first, so the first's order is everyone's.
  for (const std::string& id : ids(crew.members.front().name)) {
    const bool common = std::all_of(
        crew.members.begin(), crew.members.end(), [&](const CrewMember& each) {
          const auto& has = ids(each.name);
          return std::find(has.begin(), has.end(), id) != has.end();
        });
    if (common) {
      crew.numerics_id = id;
      return absl::OkStatus();
    }
  }
  std::string each;
  for (const CrewMember& member : crew.members) {
    absl::StrAppend(&each, each.empty() ? "" : "; ", member.name, " has ",
                    absl::StrJoin(ids(member.name), ", "));
  }
  return common::status::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "the stages have no numerics id in common, so their results would "
          "depend on which stage has which layers: ",
          each, "; install the same release on all")),
      common::status::kReasonNumericsMismatch);
}

int ThreadsOf(const spec::JobSpec& spec, const Crew& crew, int rank) {
  if (spec.threads_per_stage.has_value()) {
    return static_cast<int>(*spec.threads_per_stage);
  }
  return rank < static_cast<int>(crew.members.size())
             ? crew.members[rank].device.threads()
             : 0;
}

bool ReadsData(const schedule::Placement& placement, int rank) {
  return placement.rank_of(0) == rank ||
         placement.rank_of(placement.stages() - 1) == rank;
}

v1::CheckInputs CheckInputsFor(const NewJob& job, const std::string& job_id,
                               const planner::StageMap& map, int rank) {
  v1::CheckInputs check;
  check.set_job_id(job_id);
  *check.mutable_model() = ModelConfigOf(job.spec.model);
  for (const int stage : schedule::StagesOfRank(map.placement, rank)) {
    *check.add_chunks() = ChunkOf(map.stages[stage], stage);
  }
  if (ReadsData(map.placement, rank)) {
    *check.mutable_data() = DataConfigOf(job.spec);
  }
  check.set_model_path(job.spec.model.from);
  return check;
}

v1::Assignment AssignmentFor(const AssignmentRequest& request, int rank) {
  const spec::JobSpec& spec = request.spec;
  const schedule::LoweredProgram& program = request.plan.program;
  v1::Assignment assignment;
  assignment.set_job_id(request.job_id);
  assignment.set_rank(rank);
  assignment.set_ranks(program.ranks());
  *assignment.mutable_model() = ModelConfigOf(spec.model);
  *assignment.mutable_optimizer() = OptimizerConfigOf(spec.optimizer);
  if (ReadsData(program.placement, rank)) {
    *assignment.mutable_data() = DataConfigOf(spec);
  }
  const schedule::Costs& costs = request.plan.costs;
  const bool modelled =
      request.crew.device_kind ==
      spec::NameOf(spec::kDeviceKindNames, spec::DeviceKind::kVirtual);
  if (modelled) {
    v1::ModelledTransfers& wire = *assignment.mutable_modelled_transfers();
    *wire.mutable_latency() = DurationOf(costs.latency);
    wire.set_seconds_per_byte(costs.seconds_per_byte);
  }
  for (const int stage : schedule::StagesOfRank(program.placement, rank)) {
    v1::Chunk chunk = ChunkOf(request.plan.stages[stage], stage);
    if (modelled) {
      *chunk.mutable_modelled_times() = TimesOf(costs.stages[stage]);
    }
    chunk.set_slots(program.stages[stage].slots);
    chunk.set_local_gradient_slots(program.stages[stage].local_gradient_slots);
    chunk.set_held_slots(program.stages[stage].held);
    *assignment.add_chunks() = chunk;
  }
  for (const schedule::Edge& edge : program.edges) {
    if (edge.source_rank != rank && edge.target_rank != rank) continue;
    v1::EdgeAssignment& assigned = *assignment.add_edges();
    *assigned.mutable_edge() = EdgeToProto(edge);
    const bool source = edge.source_rank == rank;
    const int peer = source ? edge.target_rank : edge.source_rank;
    assigned.set_source(source);
    assigned.set_peer_name(request.crew.members[peer].name);
    assigned.set_peer_address(request.crew.members[peer].data_address);
    assigned.set_capacity(edge.capacity);
    assigned.set_send_buffers(edge.send_buffers);
  }
  assignment.set_micro_batch(spec.batch.micro_batch.value_or(1));
  assignment.set_micro_batches(program.micro_batches);
  assignment.set_sequence_length(spec.data.sequence_length.value_or(0));
  assignment.set_seed(static_cast<uint64_t>(spec.seed));
  assignment.set_full_recompute(spec.pipeline.recompute ==
                                spec::Recompute::kFull);
  assignment.set_numerics_id(request.crew.numerics_id);
  assignment.set_model_path(spec.model.from);
  assignment.set_epoch_secret(request.epoch_secret);
  assignment.set_threads(ThreadsOf(spec, request.crew, rank));
  *assignment.mutable_connect_deadline() =
      common::time::ToProto(request.options.assembly_deadline);
  *assignment.mutable_command_deadline() =
      common::time::ToProto(request.command_deadline);
  return assignment;
}

absl::Status CheckMemory(const v1::MemoryBytes& memory) {
  for (const int64_t bytes : {memory.parameters(), memory.gradients(),
                              memory.optimizer(), memory.activation_slots(),
                              memory.workspace(), memory.transfer_slots()}) {
    if (bytes >= 0 && bytes <= kMostBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the stage counts ", bytes, " bytes of one kind of memory"));
  }
  return absl::OkStatus();
}

int64_t TotalBytes(const v1::MemoryBytes& memory) {
  return memory.parameters() + memory.gradients() + memory.optimizer() +
         memory.activation_slots() + memory.workspace() +
         memory.transfer_slots();
}

absl::Status CheckCoverage(const planner::ModelShape& model, const Crew& crew,
                           const std::vector<v1::StageReady>& ready) {
  const int64_t parameters = planner::CountParameters(model);
  const int64_t wanted = planner::CountElements(model);
  std::vector<int> owner(parameters, -1);
  int64_t elements = 0;
  for (size_t rank = 0; rank < ready.size(); ++rank) {
    for (const v1::ParameterInfo& parameter : ready[rank].parameters()) {
      if (!parameter.owned()) continue;
      const int64_t index = parameter.canonical_index();
      if (index < 0 || index >= parameters) {
        return absl::InternalError(absl::StrCat(
            crew.members[rank].name, " has parameter ", parameter.name(),
            " with number ", index, "; the model has ", parameters));
      }
      if (owner[index] >= 0) {
        return absl::InternalError(absl::StrCat(
            "parameter ", parameter.name(), " is owned by both ",
            crew.members[owner[index]].name, " and ", crew.members[rank].name));
      }
      owner[index] = static_cast<int>(rank);
      if (parameter.elements() < 0 ||
          parameter.elements() > wanted - elements) {
        return absl::InternalError(absl::StrCat(
            "parameter ", parameter.name(), " of ", crew.members[rank].name,
            " has ", parameter.elements(), " elements, the model has ",
            wanted - elements, " more"));
      }
      elements += parameter.elements();
    }
  }
  const auto missing = std::find(owner.begin(), owner.end(), -1);
  if (missing != owner.end()) {
    return absl::InternalError(absl::StrCat("no stage has parameter number ",
                                            missing - owner.begin(), " of ",
                                            parameters));
  }
  if (elements != wanted) {
    return absl::InternalError(
        absl::StrCat("the stages' parameters have ", elements,
                     " elements, the model has ", wanted));
  }
  return absl::OkStatus();
}

}  // namespace penstock::coordinator::dispatch
