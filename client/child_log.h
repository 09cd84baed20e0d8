// What the log of a child that has ended says of its end.
#ifndef PENSTOCK_CLIENT_CHILD_LOG_H_
#define PENSTOCK_CLIENT_CHILD_LOG_H_

#include <string>

namespace penstock::client {

// The last line of the file that is not empty, or "". Does not move the
// descriptor's position.
std::string LastLine(int fd);

// The same, but "" for a line of severity INFO (common/log): that is no reason
// to end.
std::string LastTrouble(int fd);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_CHILD_LOG_H_
