// Assignments and commands for tests: what a coordinator sends for a lowered
// schedule, without planner and dispatcher.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_ASSIGNMENTS_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_ASSIGNMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/schedule/lowered_program.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/model/model_config.h"

namespace penstock::testing {

// gpt2, small enough for thousands of steps a minute.
server::model::ModelConfig TinyModel();

v1::ModelConfig EncodeModel(const server::model::ModelConfig& model);
v1::OptimizerConfig AdamwSettings();

struct AssignmentOptions {
  server::model::ModelConfig model;
  v1::OptimizerConfig optimizer = AdamwSettings();
  int64_t micro_batch = 1;
  int64_t sequence_length = 8;
  uint64_t seed = 1;
  bool full_recompute = false;
  int64_t command_deadline_ms = 60'000;
  std::vector<std::string> addresses;  // Of the ranks' data listeners, or none.
};

// One a rank. Layers are cut as evenly as can be; peers are "stage-<rank>".
std::vector<v1::Assignment> Assignments(
    const coordinator::schedule::LoweredProgram& program,
    const AssignmentOptions& options);

// A step's TRAIN commands of one rank.
v1::StepCommands TrainCommands(
    const coordinator::schedule::LoweredProgram& program, int rank,
    int64_t step);
// Forwards of `micro_batches`, in the order of forward_order.h.
v1::StepCommands EvaluateCommands(
    const coordinator::schedule::LoweredProgram& program, int rank,
    int64_t step, int micro_batches);

// A schedule by its name in job files, lowered; CHECKs that it works.
struct ScheduleOptions {
  std::string name = "1f1b";
  int ranks = 1;
  int chunks = 1;
  int micro_batches = 1;
  bool tied = true;
  int send_buffers = 1;
};
coordinator::schedule::LoweredProgram LowerNamed(
    const ScheduleOptions& options);

// Every schedule on 1 to 4 ranks with one chunk or two, as far as it has a
// meaning for that many micro-batches.
std::vector<ScheduleOptions> EveryCell(int micro_batches);

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_ASSIGNMENTS_H_
