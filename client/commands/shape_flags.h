// The flags of a schedule's shape, the same for `simulate` and `verify`.
#ifndef PENSTOCK_CLIENT_COMMANDS_SHAPE_FLAGS_H_
#define PENSTOCK_CLIENT_COMMANDS_SHAPE_FLAGS_H_

#include <CLI/CLI.hpp>

#include "client/commands/flag_checks.h"

namespace penstock::client::commands {

struct ShapeFlags {
  int stages = 0, micro_batches = 0;
  int chunks = 0;  // 0: what the schedule needs.
};

inline void AddShapeFlags(CLI::App& command, ShapeFlags& shape) {
  command.add_option("--stages", shape.stages, "K, ranks")->required();
  command.add_option("--micro-batches", shape.micro_batches, "M")->required();
  command
      .add_option(
          "--chunks", shape.chunks,
          "v, chunks a rank; auto tries 1 to 8, 16, 32, 64, and the number "
          "given if it is below 64")
      ->check(AtLeast(1));
}

// `Request` is SimulateScheduleRequest or VerifyScheduleRequest.
template <typename Request>
void SetShape(const ShapeFlags& shape, Request& request) {
  request.set_stages(shape.stages);
  request.set_micro_batches(shape.micro_batches);
  request.set_chunks(shape.chunks);
}

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_SHAPE_FLAGS_H_
