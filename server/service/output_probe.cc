#include "server/service/output_probe.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/file/file.h"
#include "common/rpc/cause.h"

namespace penstock::server::service {

v1::OutputProbed ProbeOutput(const v1::ProbeOutput& request,
                             const std::string& stage_name) {
  v1::OutputProbed probed;
  const absl::Status written = common::file::ReplaceFile(
      {.path = absl::StrCat(request.directory(), "/", request.file()),
       .contents = request.contents()});
  if (!written.ok()) {
    *probed.mutable_failure() = common::rpc::ToCause(written, stage_name);
  }
  return probed;
}

}  // namespace penstock::server::service
