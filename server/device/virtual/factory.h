// The device "virtual": computes what `reference` computes, to the bit, but an
// op takes the time that the job models for it (Stream::Occupy), in which it
// uses no processor. So pipelines of many stages can be measured on few cores,
// provided that the tensors are tiny: the math must fit in the modelled time.
#ifndef PENSTOCK_SERVER_DEVICE_VIRTUAL_FACTORY_H_
#define PENSTOCK_SERVER_DEVICE_VIRTUAL_FACTORY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/time/clock.h"
#include "server/device/device.h"

// The folder's name is a keyword.
namespace penstock::server::device::virtual_device {

// "virtual-" and the id of `reference`, whose bits it has.
std::string NumericsId();

// Borrows the clock. Streams are inline, as those of `reference`. Never fails.
absl::StatusOr<std::unique_ptr<Device>> CreateVirtualDevice(
    const common::time::Clock& clock);

}  // namespace penstock::server::device::virtual_device

#endif  // PENSTOCK_SERVER_DEVICE_VIRTUAL_FACTORY_H_
