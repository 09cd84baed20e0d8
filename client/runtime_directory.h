// The folder in which `run` makes its own for sockets.
#ifndef PENSTOCK_CLIENT_RUNTIME_DIRECTORY_H_
#define PENSTOCK_CLIENT_RUNTIME_DIRECTORY_H_

#include <string>
#include <vector>

namespace penstock::client {

// The first of `candidates` that may be written to and leaves room for a
// socket's path below it (the kernel takes 107 bytes); the last where none
// does: the error is then of whoever makes something there. Empty ones are
// skipped. REQUIRES: there is one.
std::string RuntimeDirectory(const std::vector<std::string>& candidates);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_RUNTIME_DIRECTORY_H_
