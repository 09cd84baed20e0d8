// Which changes of a .proto break those who speak the older one.
#ifndef PENSTOCK_TESTS_PROTO_WIRE_COMPATIBILITY_H_
#define PENSTOCK_TESTS_PROTO_WIRE_COMPATIBILITY_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"

namespace penstock::tests::proto {

// One line a break, "penstock.v1.Job.state: number 3 became 4". Additions are
// no breaks; a removed field is one unless its number is reserved now.
std::vector<std::string> WireBreaks(
    const google::protobuf::FileDescriptorSet& before,
    const google::protobuf::FileDescriptorSet& after);

}  // namespace penstock::tests::proto

#endif  // PENSTOCK_TESTS_PROTO_WIRE_COMPATIBILITY_H_
