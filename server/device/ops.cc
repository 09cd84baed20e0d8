#include "server/device/ops.h"

namespace penstock::server::device {

int64_t Weight::in() const {
  return master.shape().dim(layout == WeightLayout::kInOut ? 0 : 1);
}

int64_t Weight::out() const {
  return master.shape().dim(layout == WeightLayout::kInOut ? 1 : 0);
}

}  // namespace penstock::server::device
