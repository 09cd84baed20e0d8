#include "server/device/reference/embedding.h"

#include <algorithm>

namespace penstock::server::device::reference {

void EmbeddingForward(const EmbeddingForwardArgs& args) {
  const int64_t rows = args.ids.elements(), seq = args.ids.columns();
  const int64_t width = args.tokens.columns();
  for (int64_t r = 0; r < rows; ++r) {
    const float* token = args.tokens.f32() + args.ids.i32()[r] * width;
    float* y = args.y.f32() + r * width;
    std::copy_n(token, width, y);
    if (!args.positions.present()) continue;
    const float* position = args.positions.f32() + r % seq * width;
    for (int64_t i = 0; i < width; ++i) y[i] += position[i];
  }
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  const int64_t rows = args.ids.elements(), seq = args.ids.columns();
  const int64_t width = args.dtokens.columns();
  const bool store = args.accumulate == Accumulate::kStore;
  if (store) {
    std::fill_n(args.dtokens.f32(), args.dtokens.elements(), 0.0f);
    if (args.dpositions.present()) {
      std::fill_n(args.dpositions.f32(), args.dpositions.elements(), 0.0f);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* dy = args.dy.f32() + r * width;
    float* token = args.dtokens.f32() + args.ids.i32()[r] * width;
    for (int64_t i = 0; i < width; ++i) token[i] += dy[i];
    if (!args.dpositions.present()) continue;
    float* position = args.dpositions.f32() + r % seq * width;
    for (int64_t i = 0; i < width; ++i) position[i] += dy[i];
  }
}

}  // namespace penstock::server::device::reference
