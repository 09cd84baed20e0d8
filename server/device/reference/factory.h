// The device "reference": plain loops, the oracle that every other backend is
// compared with. Its bits are a function of IEEE arithmetic alone: every
// compiler and x86-64 CPU gives the same.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_FACTORY_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/device/device.h"

namespace penstock::server::device::reference {

// The number grows whenever any op's bits change; the golden hashes in
// tests/server/device/golden_bits_test.cc notice.
inline constexpr char kNumericsId[] = "reference-2";

// Inline streams: an op runs on the thread that calls it. Never fails.
absl::StatusOr<std::unique_ptr<Device>> CreateReferenceDevice();

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_FACTORY_H_
