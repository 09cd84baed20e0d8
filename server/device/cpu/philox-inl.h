// Philox words (philox.h), many blocks at a time. Included once per Highway
// target.
#if defined(PENSTOCK_SERVER_DEVICE_CPU_PHILOX_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_SERVER_DEVICE_CPU_PHILOX_INL_H_
#undef PENSTOCK_SERVER_DEVICE_CPU_PHILOX_INL_H_
#else
#define PENSTOCK_SERVER_DEVICE_CPU_PHILOX_INL_H_
#endif

#include "hwy/highway.h"
#include "server/device/philox.h"

#if HWY_TARGET <= HWY_SSE4  // Not the fallback that foreach_target wants.
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {
namespace philox {

namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::ScalableTag<uint32_t>;
using VU = hn::Vec<DU>;
constexpr int64_t kLanes = hn::MaxLanes(DU());

// Words that a call may write beyond the last block.
constexpr int64_t kSlack = 4 * kLanes;

struct Product {
  VU high, low;
};
HWY_INLINE Product Multiply(VU a, uint32_t factor) {
  const DU d;
  const hn::RepartitionToWide<DU> dw;
  const VU f = hn::Set(d, factor);
  const auto even = hn::MulEven(a, f);
  const auto odd =
      hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(dw, a))), f);
  return {hn::OddEven(hn::BitCast(d, odd),
                      hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)),
                      hn::BitCast(d, even))};
}

// Writes the words of blocks [first, first + blocks), in order.
HWY_INLINE void Words(const DropoutWords& words, int64_t first, int64_t blocks,
                      uint32_t* to) {
  const DU d;
  if ((first >> 32) != ((first + blocks + kLanes) >> 32)) {
    for (int64_t b = 0; b < blocks; ++b, to += 4) {
      const PhiloxCounter block = words.Block(first + b);
      for (int i = 0; i < 4; ++i) to[i] = block[i];
    }
    return;
  }
  for (int64_t b = 0; b < blocks; b += kLanes, to += 4 * kLanes) {
    const PhiloxCounter start = words.Counter(first + b);
    PhiloxKey key = words.key();
    VU c0 = hn::Add(hn::Iota(d, 0), hn::Set(d, start[0]));
    VU c1 = hn::Set(d, start[1]), c2 = hn::Set(d, start[2]);
    VU c3 = hn::Set(d, start[3]);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const Product p0 = Multiply(c0, kPhiloxMultiplier0);
      const Product p1 = Multiply(c2, kPhiloxMultiplier1);
      c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, key[0]));
      c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, key[1]));
      c1 = p1.low;
      c3 = p0.low;
      key[0] += kPhiloxWeyl0;
      key[1] += kPhiloxWeyl1;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, to);
  }
}

// `scale` where the word keeps its element, 0 elsewhere.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> Factors(const uint32_t* words,
                                                   uint32_t threshold,
                                                   float scale) {
  const DU d;
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<DU> di;
  const auto top = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(d, words)));
  const auto kept =
      hn::Gt(top, hn::Set(di, static_cast<int32_t>(threshold) - 1));
  return hn::IfThenElseZero(hn::RebindMask(df, kept), hn::Set(df, scale));
}

}  // namespace philox
}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // level

#endif  // include guard
