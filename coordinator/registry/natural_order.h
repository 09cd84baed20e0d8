// The order of stages' names: stage-2 before stage-10. Ranks go by it.
#ifndef PENSTOCK_COORDINATOR_REGISTRY_NATURAL_ORDER_H_
#define PENSTOCK_COORDINATOR_REGISTRY_NATURAL_ORDER_H_

#include "absl/strings/string_view.h"

namespace penstock::coordinator::registry {

// Runs of digits compare as numbers, all else by bytes; of names that differ
// in leading zeros only, by bytes. A strict total order.
bool NaturalLess(absl::string_view a, absl::string_view b);

}  // namespace penstock::coordinator::registry

#endif  // PENSTOCK_COORDINATOR_REGISTRY_NATURAL_ORDER_H_
