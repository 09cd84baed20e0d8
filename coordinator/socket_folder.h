// The folder with the embedded coordinator's socket and those of its stages.
//
// Made here and not by `penstock run`, which may be killed at any time: here
// that is heard of, and the folder is removed.
#ifndef PENSTOCK_COORDINATOR_SOCKET_FOLDER_H_
#define PENSTOCK_COORDINATOR_SOCKET_FOLDER_H_

#include <filesystem>

#include "absl/status/status.h"

namespace penstock::coordinator {

// Mode 0700. Unavailable with the path where it is there already, or cannot be
// made.
absl::Status MakeSocketFolder(const std::filesystem::path& folder);

// Also after the parent was killed, nothing of the cluster stays behind. Only
// sockets are removed, and the folder only when nothing else is in it.
void RemoveSocketFolder(const std::filesystem::path& folder);

}  // namespace penstock::coordinator

#endif  // PENSTOCK_COORDINATOR_SOCKET_FOLDER_H_
