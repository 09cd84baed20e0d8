// What main() read from the environment, and its clock, passed down: nothing
// else reads either.
#ifndef PENSTOCK_CLIENT_ENVIRONMENT_H_
#define PENSTOCK_CLIENT_ENVIRONMENT_H_

#include <functional>
#include <string>

#include "common/time/clock.h"

namespace penstock::client {

struct Environment {
  const common::time::Clock& clock;
  std::string binary_directory;   // Of this program, and its daemons.
  std::string runtime_directory;  // runtime_directory.h
  std::string working_directory;
  std::string address;                  // $PENSTOCK_ADDRESS
  bool stderr_is_terminal = false;      // One that can rewrite a line.
  std::function<int()> stderr_columns;  // Now; 0: not known.
  int cores = 1;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_ENVIRONMENT_H_
