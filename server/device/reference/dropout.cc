#include "server/device/reference/dropout.h"

#include "server/device/philox.h"

namespace penstock::server::device::reference {

void ApplyDropout(const DropoutArgs& args) {
  const int64_t batch = args.x.shape().dim(0);
  const int64_t size = args.x.shape().dim(1) * args.x.shape().dim(2);
  const Dropout& dropout = args.dropout;
  const bool active = dropout.rate > 0;
  const uint32_t threshold = KeepThreshold(dropout.rate);
  const float scale = 1 / (1 - dropout.rate);
  for (int64_t b = 0; b < batch; ++b) {
    const DropoutWords words(
        {.seed = dropout.seed,
         .step = active ? dropout.position.i64()[0] : 0,
         .sample = active ? dropout.position.i64()[1] + b : 0,
         .site = dropout.site});
    for (int64_t e = 0; e < size; ++e) {
      const int64_t i = b * size + e;
      float value = args.x.f32()[i];
      if (active) value = Kept(words.Word(e), threshold) ? value * scale : 0;
      if (args.residual.present()) value = args.residual.f32()[i] + value;
      args.y.f32()[i] = value;
    }
  }
}

}  // namespace penstock::server::device::reference
