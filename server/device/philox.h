// Philox4x32-10, the counter-based generator that dropout masks come from
// (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). A block of four 32-bit words is a pure function of counter and key,
// so that a mask needs no state and no memory: any device, split or replay
// computes the same one.
//
// The layout, fixed for ever (part of every numerics id):
//
//   key      0: seed bits 0..31            1: seed bits 32..63
//   counter  0: element block bits 0..31   (element block = element / 4)
//            1: dropout site (bits 0..15), element block bits 32..47 (16..31)
//            2: global sample, bits 0..31
//            3: step, bits 0..31
//   word     element % 4 of the block is the element's
//
// Samples of one step are consecutive, so that their low 32 bits differ within
// a step. `element` counts within one sample and site (ops.h says how).
#ifndef PENSTOCK_SERVER_DEVICE_PHILOX_H_
#define PENSTOCK_SERVER_DEVICE_PHILOX_H_

#include <array>
#include <cmath>
#include <cstdint>

namespace penstock::server::device {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

// The four words of a block.
inline PhiloxCounter Philox4x32(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t a = uint64_t{kPhiloxMultiplier0} * c[0];
    const uint64_t b = uint64_t{kPhiloxMultiplier1} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1],
         static_cast<uint32_t>(a)};
    k[0] += kPhiloxWeyl0;
    k[1] += kPhiloxWeyl1;
  }
  return c;
}

// The words that one dropout site of one sample uses. Immutable.
class DropoutWords {
 public:
  struct Options {
    uint64_t seed = 0;
    int64_t step = 0;
    int64_t sample = 0;
    int32_t site = 0;  // In [0, 65536).
  };
  explicit DropoutWords(const Options& options)
      : key_{static_cast<uint32_t>(options.seed),
             static_cast<uint32_t>(options.seed >> 32)},
        site_(static_cast<uint32_t>(options.site)),
        sample_(static_cast<uint32_t>(options.sample)),
        step_(static_cast<uint32_t>(options.step)) {}

  PhiloxKey key() const { return key_; }
  PhiloxCounter Counter(int64_t block) const {
    return {static_cast<uint32_t>(block),
            site_ | static_cast<uint32_t>(block >> 32) << 16, sample_, step_};
  }
  PhiloxCounter Block(int64_t block) const {
    return Philox4x32(Counter(block), key_);
  }
  uint32_t Word(int64_t element) const {
    return Block(element / 4)[element % 4];
  }

 private:
  PhiloxKey key_;
  uint32_t site_, sample_, step_;
};

// An element is kept when (word >> 8) * 2^-24, uniform in [0, 1), is at least
// the rate: when word >> 8 is at least this. REQUIRES: rate in [0, 1).
inline uint32_t KeepThreshold(float rate) {
  return static_cast<uint32_t>(std::ceil(double{rate} * 16777216.0));
}
inline bool Kept(uint32_t word, uint32_t threshold) {
  return (word >> 8) >= threshold;
}

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_PHILOX_H_
