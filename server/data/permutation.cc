#include "server/data/permutation.h"

#include "common/log/log.h"
#include "server/device/philox.h"

namespace penstock::server::data {
namespace {

constexpr int kRounds = 8;

// Keeps these words apart from those of dropout masks, which use the job's
// seed as it is.
constexpr uint64_t kDomain = 0x73687566666c6531;  // "shuffle1"

}  // namespace

Permutation::Permutation(const Options& options)
    : size_(static_cast<uint64_t>(options.size)),
      seed_(options.seed ^ kDomain),
      pass_(static_cast<uint64_t>(options.pass)),
      half_bits_(1) {
  CHECK_GE(options.size, 1);
  CHECK_GE(options.pass, 0);
  while (half_bits_ < 32 && (uint64_t{1} << 2 * half_bits_) < size_) {
    ++half_bits_;
  }
}

int64_t Permutation::At(int64_t index) const {
  CHECK(index >= 0 && static_cast<uint64_t>(index) < size_);
  uint64_t value = static_cast<uint64_t>(index);
  do {
    value = Turn(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

uint64_t Permutation::Turn(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  const device::PhiloxKey key = {static_cast<uint32_t>(seed_),
                                 static_cast<uint32_t>(seed_ >> 32)};
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const device::PhiloxCounter words = device::Philox4x32(
        {static_cast<uint32_t>(right), round, static_cast<uint32_t>(pass_),
         static_cast<uint32_t>(pass_ >> 32)},
        key);
    const uint64_t mixed = left ^ (words[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

}  // namespace penstock::server::data
