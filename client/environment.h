// What main() read from the environment, passed down: nothing else reads it.
#ifndef PENSTOCK_CLIENT_ENVIRONMENT_H_
#define PENSTOCK_CLIENT_ENVIRONMENT_H_

#include <string>

namespace penstock::client {

struct Environment {
  std::string binary_directory;   // Of this program, and its daemons.
  std::string runtime_directory;  // $XDG_RUNTIME_DIR, or the temporary folder.
  std::string working_directory;
  std::string address;  // $PENSTOCK_ADDRESS
  bool stderr_is_terminal = false;
  int cores = 1;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_ENVIRONMENT_H_
