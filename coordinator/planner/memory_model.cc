#include "coordinator/planner/memory_model.h"

#include <algorithm>

#include "common/log/log.h"
#include "coordinator/schedule/memory_use.h"

namespace penstock::coordinator::planner {
namespace {

constexpr int64_t kWord = 4, kLong = 8;
constexpr int64_t kUpdateScalars = 4;

int StateTensors(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return 2;
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kSgdMomentum:
      return 1;
  }
  CHECK(false) << "unknown optimizer";
  return 0;
}

// Sums over the groups that a rank holds.
struct ParameterBytes {
  int64_t version = 0;  // Weights once.
  int64_t gradients = 0;
  int64_t packed = 0;
  int64_t owned = 0;  // Canonical parameters.

  void Add(const ParameterGroup& group, const PackedBytes& packed_bytes,
           int64_t times) {
    const int64_t bytes = Aligned(group.elements * kWord);
    version += times * bytes;
    gradients += times * bytes;
    owned += times * group.tensors;
    AddPacked(group, packed_bytes, times);
  }
  void AddPacked(const ParameterGroup& group, const PackedBytes& packed_bytes,
                 int64_t times) {
    if (group.in == 0 || packed_bytes == nullptr) return;
    packed += times * Aligned(packed_bytes(group.in, group.out));
  }
};

ParameterBytes CountBytes(const MemoryRequest& request,
                          absl::Span<const int> stages) {
  const ModelShape& model = request.model;
  ParameterBytes bytes;
  bool embedding = false, head = false;
  int64_t blocks = 0;
  for (const int stage : stages) {
    embedding |= request.stages[stage].embedding;
    head |= request.stages[stage].head;
    blocks += request.stages[stage].blocks();
  }
  if (embedding) {
    for (const ParameterGroup& group : EmbeddingGroups(model)) {
      bytes.Add(group, request.packed_bytes, 1);
    }
  }
  for (const ParameterGroup& group : BlockGroups(model)) {
    bytes.Add(group, request.packed_bytes, blocks);
  }
  if (head) {
    std::vector<ParameterGroup> groups = HeadGroups(model);
    const ParameterGroup projection = groups.back();
    groups.pop_back();
    for (const ParameterGroup& group : groups) {
      bytes.Add(group, request.packed_bytes, 1);
    }
    if (model.tied && embedding) {
      bytes.AddPacked(projection, request.packed_bytes, 1);
    } else {
      bytes.Add(projection, request.packed_bytes, 1);
      if (model.tied) bytes.owned -= projection.tensors;  // A copy.
    }
  }
  // The head's gradient of a tied embedding comes to the embedding's rank.
  if (model.tied && embedding) {
    bytes.gradients += Aligned(model.vocab * model.width * kWord);
  }
  return bytes;
}

RankOps OpsOf(const MemoryRequest& request, int rank,
              absl::Span<const int> stages) {
  RankOps ops;
  if (!request.threads.empty()) ops.threads = request.threads[rank];
  const auto add = [&ops](const std::vector<ParameterGroup>& groups) {
    for (const ParameterGroup& group : groups) {
      if (group.in != 0) ops.products.push_back(group);
      ops.largest_parameter = std::max(ops.largest_parameter, group.largest);
    }
  };
  for (const int stage : stages) {
    const StageLayers& layers = request.stages[stage];
    if (layers.embedding) add(EmbeddingGroups(request.model));
    if (layers.blocks() > 0 && !ops.blocks) {
      ops.blocks = true;
      add(BlockGroups(request.model));
    }
    if (!layers.head) continue;
    ops.head = true;
    std::vector<ParameterGroup> groups = HeadGroups(request.model);
    if (request.model.tied) groups.back().largest = 0;  // The embedding's.
    add(groups);
  }
  return ops;
}

}  // namespace

RankMemory PredictFixed(const MemoryRequest& request, int rank,
                        absl::Span<const int> stages) {
  const ParameterBytes bytes = CountBytes(request, stages);
  RankMemory memory;
  memory.parameters = 2 * bytes.version + bytes.packed +
                      Aligned(kUpdateScalars * kWord) +
                      Aligned(bytes.owned * kLong);
  memory.gradients = bytes.gradients;
  memory.optimizer = 2 * StateTensors(request.optimizer) * bytes.version;
  int64_t constants = 0;
  for (const int stage : stages) {
    const StageLayers& layers = request.stages[stage];
    const ChunkMemory chunk =
        PredictChunk(request.model, request.batch, layers, request.recompute);
    memory.workspace = std::max(memory.workspace, chunk.workspace);
    constants += chunk.constants;
    if (layers.head) {
      // Loss and valid tokens of each sequence of a step.
      constants +=
          request.micro_batches * request.batch.micro_batch * 2 * kLong;
    }
  }
  memory.workspace += constants;
  if (request.scratch_bytes != nullptr) {
    memory.workspace += request.scratch_bytes(request.model, request.batch,
                                              OpsOf(request, rank, stages));
  }
  return memory;
}

schedule::Memory SlotSizes(const MemoryRequest& request) {
  schedule::Memory memory{.places = schedule::Places::kOwn};
  for (const StageLayers& layers : request.stages) {
    const ChunkMemory chunk =
        PredictChunk(request.model, request.batch, layers, request.recompute);
    memory.stages.push_back({.held_until_input = chunk.slot,
                             .held_until_weight = chunk.slot + chunk.held});
    // A tied gradient is sent from where it is made and lands in the second
    // one that the embedding's rank has.
    memory.slot = {.activation = chunk.boundary, .gradient = chunk.boundary};
  }
  return memory;
}

std::vector<RankMemory> PredictMemory(const MemoryRequest& request,
                                      const schedule::LoweredProgram& program) {
  const schedule::Memory sizes = SlotSizes(request);
  const std::vector<schedule::RankParts> parts =
      schedule::PartsOfRanks(program);
  std::vector<RankMemory> ranks;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    RankMemory memory = PredictFixed(request, rank, parts[rank].stages);
    const schedule::MemoryUse use =
        schedule::MemoryUseOf(program, rank, parts[rank], sizes);
    memory.activation_slots = use.activations;
    memory.transfer_slots = use.transfers;
    memory.peak_activation_bytes = use.peak_held;
    memory.peak_in_flight = use.peak_in_flight;
    ranks.push_back(memory);
  }
  return ranks;
}

}  // namespace penstock::coordinator::planner
