// A permutation of [0, n) that is computed, not stored: the order in which a
// pass visits the sequences, a pure function of (seed, pass).
//
// Feistel network over the smallest even number of bits that holds n, its
// round function Philox4x32-10 (server/device/philox.h); a value outside
// [0, n) is sent through again until it lies inside (cycle walking; below 4
// turns on average). The result is part of what "same bits" means: it never
// changes, golden values in the test hold it.
#ifndef PENSTOCK_SERVER_DATA_PERMUTATION_H_
#define PENSTOCK_SERVER_DATA_PERMUTATION_H_

#include <cstdint>

namespace penstock::server::data {

// Immutable.
class Permutation {
 public:
  struct Options {
    int64_t size = 0;  // n, at least 1.
    uint64_t seed = 0;
    int64_t pass = 0;  // At least 0.
  };
  explicit Permutation(const Options& options);

  // Where `index` goes. REQUIRES: 0 <= index < size.
  int64_t At(int64_t index) const;

 private:
  uint64_t Turn(uint64_t value) const;

  uint64_t size_;
  uint64_t seed_;
  uint64_t pass_;
  int half_bits_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_PERMUTATION_H_
