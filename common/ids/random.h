// Where unpredictable numbers come from: ids, nonces, secrets. Whoever needs
// them takes a RandomSource, so tests pass a counter or a seeded generator.
#ifndef PENSTOCK_COMMON_IDS_RANDOM_H_
#define PENSTOCK_COMMON_IDS_RANDOM_H_

#include <cstdint>
#include <functional>

namespace penstock::common::ids {

// Returns 64 uniformly random bits a call.
using RandomSource = std::function<uint64_t()>;

// The kernel's generator (getrandom), good for secrets. Thread-safe.
RandomSource SystemRandom();

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_RANDOM_H_
