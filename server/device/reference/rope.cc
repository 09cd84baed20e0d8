#include "server/device/reference/rope.h"

namespace penstock::server::device::reference {

void Rope(const RopeArgs& args) {
  const int64_t half = args.head_dim / 2;
  const int64_t heads = args.x.columns() / args.head_dim;
  for (int64_t r = 0; r < args.x.rows(); ++r) {
    const float* cosine = args.cosine.f32() + r % args.seq * half;
    const float* sine = args.sine.f32() + r % args.seq * half;
    for (int64_t h = 0; h < heads; ++h) {
      float* x = args.x.f32() + r * args.x.row_stride() + h * args.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const float s =
            args.direction == RopeDirection::kForward ? sine[i] : -sine[i];
        const float a = x[i], b = x[i + half];
        x[i] = a * cosine[i] - b * s;
        x[i + half] = b * cosine[i] + a * s;
      }
    }
  }
}

}  // namespace penstock::server::device::reference
