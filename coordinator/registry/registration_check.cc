#include "coordinator/registry/registration_check.h"

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ids/generated_ids.h"
#include "common/ids/names.h"
#include "common/rpc/address.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "common/text/utf8.h"

namespace penstock::coordinator::registry {

using common::rpc::Address;
using common::rpc::ParseAddress;

namespace {

constexpr size_t kMaxHostBytes = 255;  // A name in DNS is no longer.
constexpr size_t kMaxTextBytes = 1024;
constexpr int kMostNumericsIds = 64;
constexpr int kMostThreads = 65536;

// One line of text.
bool IsLine(absl::string_view text, size_t max_bytes) {
  return text.size() <= max_bytes &&
         text.find_first_of("\t\n\r") == absl::string_view::npos &&
         common::text::FindNotText(text) == absl::string_view::npos;
}

}  // namespace

absl::Status CheckRegistration(const v1::RegisterStageRequest& request) {
  RETURN_IF_ERROR(common::ids::CheckStageName(request.stage_name()));
  const auto refuse = [&request](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", request.stage_name(), ": ", why));
  };
  if (!common::ids::IsUuid(request.incarnation())) {
    return refuse("incarnation must be a UUID made at each start");
  }
  if (!request.pool().empty()) {
    if (const absl::Status pool = common::ids::CheckPoolName(request.pool());
        !pool.ok()) {
      return refuse(pool.message());
    }
  }
  const v1::DeviceInfo& device = request.device();
  if (device.kind().empty()) return refuse("no device kind");
  if (device.threads() < 0 || device.threads() > kMostThreads) {
    return refuse(absl::StrCat("device.threads is ", device.threads(),
                               ", which is not from 0 to ", kMostThreads));
  }
  if (request.numerics_ids().empty()) return refuse("no numerics id");
  if (request.numerics_ids_size() > kMostNumericsIds) {
    return refuse(
        absl::StrCat("more than ", kMostNumericsIds, " numerics ids"));
  }
  const auto check = [&](absl::string_view what, absl::string_view text,
                         size_t max_bytes = kMaxTextBytes) {
    if (IsLine(text, max_bytes)) return absl::OkStatus();
    return refuse(absl::StrCat(what, " ", common::text::Quoted(text),
                               " must be one line of UTF-8 text, at most ",
                               max_bytes, " bytes"));
  };
  RETURN_IF_ERROR(check("host", request.host(), kMaxHostBytes));
  RETURN_IF_ERROR(check("device.kind", device.kind()));
  RETURN_IF_ERROR(check("device.memory_group", device.memory_group()));
  RETURN_IF_ERROR(check("build.version", request.build().version()));
  RETURN_IF_ERROR(check("build.build", request.build().build()));
  for (const std::string& id : request.numerics_ids()) {
    RETURN_IF_ERROR(check("numerics id", id));
  }
  RETURN_IF_ERROR(check("monitor_address", request.monitor_address()));
  RETURN_IF_ERROR(check("data_address", request.data_address()));
  if (!request.monitor_address().empty()) {
    if (const auto monitor = ParseAddress(request.monitor_address());
        !monitor.ok()) {
      return refuse(
          absl::StrCat("monitor_address: ", monitor.status().message()));
    }
  }
  const absl::StatusOr<Address> data = ParseAddress(request.data_address());
  if (!data.ok()) {
    return refuse(absl::StrCat("data_address: ", data.status().message()));
  }
  if (data->kind != common::rpc::AddressKind::kTcp || data->port == 0) {
    return refuse(absl::StrCat("data_address ", request.data_address(),
                               " is not where a peer can connect; give "
                               "HOST:PORT"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::coordinator::registry
