// What the machine is called.
#ifndef PENSTOCK_COMMON_PROCESS_HOST_NAME_H_
#define PENSTOCK_COMMON_PROCESS_HOST_NAME_H_

#include <string>

namespace penstock::common::process {

// In lower case; "" where the kernel does not say. Thread-safe.
std::string HostName();

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_HOST_NAME_H_
