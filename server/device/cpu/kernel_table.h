// The one table of how products are cut, by instruction-set level.
//
// Checked in, never measured at run time: the choice of a kernel is a function
// of level and shape (docs/numerics.md), and the table's digest is part of the
// numerics id, so that machines with other tables do not mix. One shape class:
// the microkernel below was the fastest on every product of the models in
// docs/decisions/0002; kc alone decides bits (gemm-inl.h).
#ifndef PENSTOCK_SERVER_DEVICE_CPU_KERNEL_TABLE_H_
#define PENSTOCK_SERVER_DEVICE_CPU_KERNEL_TABLE_H_

#include <cstdint>
#include <string>

#include "server/device/cpu/isa.h"

namespace penstock::server::device::cpu {

struct KernelBlocks {
  int mr = 0;      // Rows of a register tile.
  int nv = 0;      // Vectors of a register tile's row.
  int lanes = 0;   // Floats of a vector.
  int64_t kc = 0;  // Depth of a packed block: partial sums are this long.
  int64_t mc = 0;  // Rows of A packed at a time; a multiple of mr.

  constexpr int64_t panel() const { return int64_t{nv} * lanes; }
  constexpr int64_t packed_a_floats() const { return mc * kc; }
};

inline constexpr KernelBlocks kSse4Blocks = {
    .mr = 6, .nv = 2, .lanes = 4, .kc = 256, .mc = 144};
inline constexpr KernelBlocks kAvx2Blocks = {
    .mr = 6, .nv = 2, .lanes = 8, .kc = 256, .mc = 258};
inline constexpr KernelBlocks kAvx512Blocks = {
    .mr = 12, .nv = 2, .lanes = 16, .kc = 256, .mc = 264};

// "cpu-avx512-2-9f3a12cd": device, level, version, digest of the table. The
// version grows whenever any op's bits change on any level; the golden hashes
// in tests/server/device/golden_bits_test.cc notice.
std::string NumericsId(Isa isa);

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_KERNEL_TABLE_H_
