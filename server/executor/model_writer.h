// How END leaves the trained model: the seam to server/checkpoint.
#ifndef PENSTOCK_SERVER_EXECUTOR_MODEL_WRITER_H_
#define PENSTOCK_SERVER_EXECUTOR_MODEL_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/device.h"
#include "server/model/parameters.h"

namespace penstock::server::executor {

// Thread-compatible: confined to the engine thread.
class ModelWriter {
 public:
  virtual ~ModelWriter() = default;

  struct Request {
    const v1::End& end;
    const model::ParameterStore& parameters;
    device::Stream& stream;  // That the parameters are used on.
    // Asked between tensors: not OK, and Write returns that.
    const std::function<absl::Status()>& stopped;
  };
  // Writes the owned parameters' current values to
  // end.model_directory() / end.shard_file(); durable on return, which is the
  // tensors' names as in the file. Blocks. An error's reason becomes the job's
  // (DISK_FULL).
  virtual absl::StatusOr<std::vector<std::string>> Write(
      const Request& request) = 0;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_MODEL_WRITER_H_
