#include "common/process/host_name.h"

#include <unistd.h>

#include "absl/strings/ascii.h"

namespace penstock::common::process {

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "";
  return absl::AsciiStrToLower(name);
}

}  // namespace penstock::common::process
