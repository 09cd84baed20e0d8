// Matrix products of one instruction-set level: packing and the microkernel.
// Included once per Highway target; see kernels.h for how it is used.
//
//   C (m, n) = A (m, k) * B (k, n)   [+ C | + bias]
//
// A is packed in panels of kMr rows, B in panels of kPanel columns, k
// outermost in both, in blocks of kKc. The microkernel keeps a kMr x
// kPanel tile of C in registers. Every element of C is made by the same
// instructions whatever its place and whatever m and n are: within a block of
// kKc products one multiply-add after the other in ascending k, then the blocks
// added in order. So its bits depend on k alone, not on how m and n are cut.
#if defined(PENSTOCK_SERVER_DEVICE_CPU_GEMM_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_SERVER_DEVICE_CPU_GEMM_INL_H_
#undef PENSTOCK_SERVER_DEVICE_CPU_GEMM_INL_H_
#else
#define PENSTOCK_SERVER_DEVICE_CPU_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "hwy/highway.h"
#include "server/device/cpu/block_sizes.h"
#include "server/device/cpu/kernels.h"

#if HWY_TARGET <= HWY_SSE4  // Not the fallback that foreach_target wants.
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3
constexpr KernelBlocks kBlocks = kAvx512Blocks;
#elif HWY_TARGET == HWY_AVX2
constexpr KernelBlocks kBlocks = kAvx2Blocks;
#else
constexpr KernelBlocks kBlocks = kSse4Blocks;
#endif
constexpr int kMr = kBlocks.mr;
constexpr int kNv = kBlocks.nv;
constexpr int64_t kKc = kBlocks.kc;
constexpr int64_t kMc = kBlocks.mc;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());  // Exact on x86.
constexpr int64_t kPanel = kNv * kLanes;       // Columns of a panel of B.

template <typename F, int... I>
HWY_INLINE void UnrollOver(const F& f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
// f(0), f(1), ... f(N - 1), with constant arguments.
template <int N, typename F>
HWY_INLINE void Unroll(const F& f) {
  UnrollOver(f, std::make_integer_sequence<int, N>());
}

// A panel of `width` items: to[k * width + i] = item i's element k, 0 for items
// beyond `count`. Here element k of consecutive items is consecutive:
// from[k * stride + i].
template <int64_t width>
HWY_INLINE void PackAcross(int64_t count, int64_t depth, const float* from,
                           int64_t stride, float* to) {
  if (count == width) {
    for (int64_t k = 0; k < depth; ++k) {
      std::memcpy(to + k * width, from + k * stride, width * sizeof(float));
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < width; ++i) {
      to[k * width + i] = i < count ? from[k * stride + i] : 0.0f;
    }
  }
}

// Four items' four elements, transposed.
HWY_INLINE void Transpose4(const float* from, int64_t stride, int64_t width,
                           float* to) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> dd;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
  const auto r2 = hn::LoadU(d, from + 2 * stride);
  const auto r3 = hn::LoadU(d, from + 3 * stride);
  const auto a = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));  // 00 11
  const auto b = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
  const auto c = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));  // 22 33
  const auto e = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a, b)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, c, e)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, c, e)), d, to + 3 * width);
}

// As PackAcross, where each item's elements are consecutive
// (from[i * stride + k]). REQUIRES: width >= 4.
template <int64_t width>
HWY_INLINE void PackAlong(int64_t count, int64_t depth, const float* from,
                          int64_t stride, float* to) {
  int64_t k = 0;
  if (count == width) {
    for (; k + 4 <= depth; k += 4) {
      for (int64_t i = 0; i < width; i += 4) {
        // The last four overlap when width is no multiple of 4.
        const int64_t first = std::min(i, width - 4);
        Transpose4(from + first * stride + k, stride, width,
                   to + k * width + first);
      }
    }
  }
  for (; k < depth; ++k) {
    for (int64_t i = 0; i < width; ++i) {
      to[k * width + i] = i < count ? from[i * stride + k] : 0.0f;
    }
  }
}

// Panels [first, last) of B (k, n), of all blocks of k. Block k0 begins at
// k0 * RoundUp(n, kPanel).
HWY_INLINE void PackBPanels(const Operand& b, int64_t k, int64_t n,
                            int64_t first, int64_t last, float* to) {
  const int64_t padded = RoundUp(n, kPanel);
  for (int64_t k0 = 0; k0 < k; k0 += kKc) {
    const int64_t kc = std::min(kKc, k - k0);
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t j = panel * kPanel, count = std::min(kPanel, n - j);
      float* out = to + k0 * padded + panel * kc * kPanel;
      if (b.order == Operand::kDepthOuter) {
        PackAcross<kPanel>(count, kc, b.data + k0 * b.stride + j, b.stride,
                           out);
      } else {
        PackAlong<kPanel>(count, kc, b.data + j * b.stride + k0, b.stride, out);
      }
    }
  }
}

// Rows [m0, m1) and depths [k0, k0 + kc) of A.
HWY_INLINE void PackA(const Operand& a, int64_t m0, int64_t m1, int64_t k0,
                      int64_t kc, float* to) {
  for (int64_t i = m0; i < m1; i += kMr, to += kMr * kc) {
    const int64_t count = std::min<int64_t>(kMr, m1 - i);
    if (a.order == Operand::kDepthOuter) {
      PackAcross<kMr>(count, kc, a.data + k0 * a.stride + i, a.stride, to);
    } else {
      PackAlong<kMr>(count, kc, a.data + i * a.stride + k0, a.stride, to);
    }
  }
}

enum class Epilogue { kStore, kAdd, kBias };

// One tile: the first `rows` rows of kMr, all columns. a and b are packed.
template <Epilogue kEpilogue>
HWY_NOINLINE void Tile(int64_t kc, const float* HWY_RESTRICT a,
                       const float* HWY_RESTRICT b, float* HWY_RESTRICT c,
                       int64_t stride, int64_t rows, const float* bias) {
  const D d;
  V acc[kMr * kNv];
  Unroll<kMr * kNv>([&](auto i) HWY_ATTR { acc[i] = hn::Zero(d); });
  for (int64_t k = 0; k < kc; ++k) {
    V column[kNv];
    Unroll<kNv>([&](auto v)
                    HWY_ATTR { column[v] = hn::Load(d, b + v * kLanes); });
    Unroll<kMr>([&](auto i) HWY_ATTR {
      const V scale = hn::Set(d, a[i]);
      Unroll<kNv>([&](auto v) HWY_ATTR {
        acc[i * kNv + v] = hn::MulAdd(scale, column[v], acc[i * kNv + v]);
      });
    });
    a += kMr;
    b += kNv * kLanes;
  }
  Unroll<kMr>([&](auto i) HWY_ATTR {
    if (i >= rows) return;
    Unroll<kNv>([&](auto v) HWY_ATTR {
      float* at = c + i * stride + v * kLanes;
      V value = acc[i * kNv + v];
      if (kEpilogue == Epilogue::kAdd) {
        value = hn::Add(hn::LoadU(d, at), value);
      } else if (kEpilogue == Epilogue::kBias) {
        value = hn::Add(value, hn::LoadU(d, bias + v * kLanes));
      }
      hn::StoreU(value, d, at);
    });
  });
}

// A tile with fewer than kPanel columns: the same arithmetic, through a
// full tile aside.
HWY_INLINE void EdgeTile(Epilogue epilogue, int64_t kc, const float* a,
                         const float* b, float* c, int64_t stride, int64_t rows,
                         int64_t columns, const float* bias) {
  HWY_ALIGN float whole[kMr * kPanel];
  Tile<Epilogue::kStore>(kc, a, b, whole, kPanel, rows, nullptr);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float value = whole[i * kPanel + j];
      float& at = c[i * stride + j];
      if (epilogue == Epilogue::kAdd) {
        at = at + value;
      } else {
        at = epilogue == Epilogue::kBias ? value + bias[j] : value;
      }
    }
  }
}

// Rows [m0, m1) of C. `scratch`: kBlocks.packed_a_floats(), for kMc
// rows of A, packed.
HWY_INLINE void GemmRows(const Gemm& g, int64_t m0, int64_t m1,
                         float* scratch) {
  const int64_t padded = RoundUp(g.packed_n, kPanel);
  for (int64_t i0 = m0; i0 < m1; i0 += kMc) {
    const int64_t i1 = std::min(m1, i0 + kMc);
    for (int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += kKc) {
      const int64_t kc = std::min(kKc, g.k - k0);
      // Panels are as deep as they were packed, which may be deeper than k.
      const int64_t packed_kc = std::min(kKc, g.packed_k - k0);
      const Epilogue epilogue = k0 > 0 || g.accumulate ? Epilogue::kAdd
                                : g.bias != nullptr    ? Epilogue::kBias
                                                       : Epilogue::kStore;
      PackA(g.a, i0, i1, k0, kc, scratch);
      for (int64_t j = 0; j < g.n; j += kPanel) {
        const float* b = g.packed_b + k0 * padded + j * packed_kc;
        const float* bias = g.bias == nullptr ? nullptr : g.bias + j;
        const int64_t columns = std::min(kPanel, g.n - j);
        for (int64_t i = i0; i < i1; i += kMr) {
          const float* a = scratch + (i - i0) * kc;
          float* c = g.c + i * g.c_stride + j;
          const int64_t rows = std::min<int64_t>(kMr, i1 - i);
          if (columns < kPanel) {
            EdgeTile(epilogue, kc, a, b, c, g.c_stride, rows, columns, bias);
          } else if (epilogue == Epilogue::kAdd) {
            Tile<Epilogue::kAdd>(kc, a, b, c, g.c_stride, rows, bias);
          } else if (epilogue == Epilogue::kBias) {
            Tile<Epilogue::kBias>(kc, a, b, c, g.c_stride, rows, bias);
          } else {
            Tile<Epilogue::kStore>(kc, a, b, c, g.c_stride, rows, bias);
          }
        }
      }
    }
  }
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // level

#endif  // include guard
