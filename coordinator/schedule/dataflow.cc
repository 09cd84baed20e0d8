#include "coordinator/schedule/dataflow.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {
namespace {

absl::Status Malformed(const LoweredProgram& program, int rank, int position,
                       absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      program.name, ": lowered program: rank ", rank, ", position ", position,
      " (", ToString(program.steps[rank][position]), "): ", what));
}

bool MayUse(const LoweredStep& step, EdgeKind kind, bool send) {
  switch (step.kind) {
    case StepKind::kCompute:
      return step.command.op == Op::kForward
                 ? kind == EdgeKind::kActivation
                 : ProducesInputGradient(step.command.op) &&
                       kind == EdgeKind::kGradient;
    case StepKind::kTiedSend:
      return send && kind == EdgeKind::kTiedGradient;
    case StepKind::kTiedReduce:
      return kind == (send ? EdgeKind::kTiedSum : EdgeKind::kTiedGradient);
    case StepKind::kTiedReceive:
      return !send && kind == EdgeKind::kTiedSum;
    case StepKind::kReplicaReduce:
    case StepKind::kBarrier:
      return false;
  }
  return false;
}

}  // namespace

absl::StatusOr<Dataflow> Dataflow::Build(const LoweredProgram& program) {
  Dataflow dataflow;
  dataflow.rank_begin_.push_back(0);
  for (int r = 0; r < static_cast<int>(program.steps.size()); ++r) {
    const int count = static_cast<int>(program.steps[r].size());
    dataflow.rank_begin_.push_back(dataflow.rank_begin_.back() + count);
    dataflow.rank_of_.insert(dataflow.rank_of_.end(), count, r);
  }
  dataflow.edge_begin_.push_back(0);
  for (const Edge& edge : program.edges) {
    dataflow.edge_begin_.push_back(dataflow.edge_begin_.back() + edge.messages);
    dataflow.send_buffers_.push_back(edge.send_buffers);
  }
  dataflow.messages_.resize(dataflow.edge_begin_.back());
  dataflow.message_in_.assign(dataflow.step_count(), kNone);
  dataflow.message_out_.assign(dataflow.step_count(), kNone);
  RETURN_IF_ERROR(dataflow.Connect(program));
  dataflow.SetCredits(program);
  return dataflow;
}

absl::Status Dataflow::Connect(const LoweredProgram& program) {
  const int edges = static_cast<int>(program.edges.size());
  std::vector<int> sent(edges, 0);
  std::vector<int> taken(edges, 0);
  // One direction of one step: message `number` must be the next of its edge.
  const auto connect = [&](int rank, int position, bool send) -> absl::Status {
    const LoweredStep& step = program.steps[rank][position];
    const int e = send ? step.send_edge : step.receive_edge;
    const int number = send ? step.send_message : step.receive_message;
    if (e == kNone) return absl::OkStatus();
    const auto wrong = [&](absl::string_view what) {
      return Malformed(
          program, rank, position,
          absl::StrCat(send ? "its send" : "its receive", " ", what));
    };
    if (e < 0 || e >= edges) return wrong("has no such edge");
    const Edge& edge = program.edges[e];
    const int stage = send ? edge.source_stage : edge.target_stage;
    if ((send ? edge.source_rank : edge.target_rank) != rank ||
        stage != step.command.stage || !MayUse(step, edge.kind, send)) {
      return wrong(absl::StrCat("does not belong on ", ToString(edge)));
    }
    int& next = send ? sent[e] : taken[e];
    if (number != next || next >= edge.messages) {
      return wrong(absl::StrCat("is message ", number, " of ", ToString(edge),
                                ", expected ", next, " of ", edge.messages));
    }
    const int message = edge_begin_[e] + next++;
    messages_[message].edge = e;
    const int index = rank_begin_[rank] + position;
    (send ? messages_[message].producer : messages_[message].consumer) = index;
    (send ? message_out_ : message_in_)[index] = message;
    return absl::OkStatus();
  };
  for (int r = 0; r < ranks(); ++r) {
    for (int p = 0; p < static_cast<int>(program.steps[r].size()); ++p) {
      RETURN_IF_ERROR(connect(r, p, /*send=*/false));
      RETURN_IF_ERROR(connect(r, p, /*send=*/true));
    }
  }
  const auto command = [&](int step) -> const Command& {
    return program.steps[rank_of_[step]][position_of(step)].command;
  };
  for (int e = 0; e < edges; ++e) {
    const Edge& edge = program.edges[e];
    if (sent[e] != edge.messages || taken[e] != edge.messages) {
      return absl::InvalidArgumentError(
          absl::StrCat(program.name, ": lowered program: ", ToString(edge),
                       " has ", edge.messages, " messages, ", sent[e],
                       " sends, ", taken[e], " receives"));
    }
    if (edge.kind != EdgeKind::kActivation &&
        edge.kind != EdgeKind::kGradient) {
      continue;
    }
    for (int i = edge_begin_[e]; i < edge_begin_[e + 1]; ++i) {
      const Message& message = messages_[i];
      if (command(message.producer).micro_batch !=
          command(message.consumer).micro_batch) {
        return Malformed(program, rank_of_[message.consumer],
                         position_of(message.consumer),
                         absl::StrCat("takes the output of ",
                                      ToString(command(message.producer)),
                                      " from ", ToString(edge)));
      }
    }
  }
  return absl::OkStatus();
}

void Dataflow::RemoveCredits() {
  for (Message& message : messages_) message.credit = kNone;
  IndexCredits();
}

void Dataflow::SetCredits(const LoweredProgram& program) {
  const int micro_batches = program.micro_batches;
  std::vector<int> release(program.stages.size() * micro_batches, kNone);
  for (int r = 0; r < ranks(); ++r) {
    for (int p = 0; p < static_cast<int>(program.steps[r].size()); ++p) {
      const LoweredStep& step = program.steps[r][p];
      if (!step.releases_stash()) continue;
      release[static_cast<size_t>(step.command.stage) * micro_batches +
              step.command.micro_batch] = rank_begin_[r] + p;
    }
  }
  std::vector<int> occupant;  // (slot): micro-batch
  for (int e = 0; e < edge_count(); ++e) {
    const Edge& edge = program.edges[e];
    const int begin = edge_begin_[e];
    if (edge.lands_in_stash) {
      const int slots = program.stages[edge.target_stage].slots;
      occupant.assign(slots, kNone);
      for (int i = begin; i < edge_begin_[e + 1]; ++i) {
        const int consumer = messages_[i].consumer;
        const int m = program.steps[rank_of_[consumer]][position_of(consumer)]
                          .command.micro_batch;
        int& before = occupant[m % slots];
        messages_[i].credit =
            before == kNone ? kNone
                            : release[static_cast<size_t>(edge.target_stage) *
                                          micro_batches +
                                      before];
        before = m;
      }
      continue;
    }
    for (int i = begin; i < edge_begin_[e + 1]; ++i) {
      const int consumer = messages_[i].consumer;
      if (edge.capacity == 0) {
        messages_[i].credit = position_of(consumer) == 0 ? kNone : consumer - 1;
      } else {
        const int freed_by = i - edge.capacity;
        messages_[i].credit =
            freed_by < begin ? kNone : messages_[freed_by].consumer;
      }
    }
  }
  IndexCredits();
}

void Dataflow::IndexCredits() {
  freed_begin_.assign(step_count() + 1, 0);
  int count = 0;
  for (const Message& message : messages_) {
    if (message.credit == kNone) continue;
    ++freed_begin_[message.credit + 1];
    ++count;
  }
  for (int i = 0; i < step_count(); ++i) freed_begin_[i + 1] += freed_begin_[i];
  freed_.resize(count);
  std::vector<int> at(freed_begin_.begin(), freed_begin_.end() - 1);
  for (int i = 0; i < static_cast<int>(messages_.size()); ++i) {
    if (messages_[i].credit != kNone) freed_[at[messages_[i].credit]++] = i;
  }
}

Durations DurationsOf(const LoweredProgram& program, const Costs& costs) {
  Durations durations;
  durations.latency.assign(program.edges.size(), costs.latency);
  for (const auto& steps : program.steps) {
    for (const LoweredStep& step : steps) {
      double time = 0;
      if (step.kind == StepKind::kCompute) {
        time = costs.stages[step.command.stage].of(step.command.op);
      } else if (step.kind == StepKind::kTiedReduce) {
        time = costs.tied_add;
      }
      durations.step.push_back(time);
    }
  }
  for (const Edge& edge : program.edges) {
    const int64_t bytes =
        edge.kind == EdgeKind::kActivation ? costs.bytes.activation
        : edge.kind == EdgeKind::kGradient ? costs.bytes.gradient
                                           : costs.bytes.tied;
    durations.wire.push_back(static_cast<double>(bytes) *
                             costs.seconds_per_byte);
  }
  return durations;
}

}  // namespace penstock::coordinator::schedule
