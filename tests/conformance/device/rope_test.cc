#include <cmath>

#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Size {
  int64_t batch, seq, heads, head_dim, table_rows;
};
constexpr Size kSizes[] = {
    {0, 3, 1, 2, 3}, {1, 1, 1, 2, 1}, {2, 7, 3, 6, 9}, {2, 16, 2, 64, 16}};

std::vector<double> Rotated(const Size& s, const std::vector<float>& x,
                            const std::vector<float>& cosine,
                            const std::vector<float>& sine, double sign) {
  std::vector<double> y(x.size());
  const int64_t half = s.head_dim / 2, width = s.heads * s.head_dim;
  for (int64_t r = 0; r < s.batch * s.seq; ++r) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < half; ++i) {
        const int64_t at = r * width + h * s.head_dim + i;
        const double c = cosine[r % s.seq * half + i];
        const double n = sign * sine[r % s.seq * half + i];
        y[at] = x[at] * c - x[at + half] * n;
        y[at + half] = x[at + half] * c + x[at] * n;
      }
    }
  }
  return y;
}

TEST_P(DeviceTest, RopeBothWaysOnStridedRows) {
  for (const Size& s : kSizes) {
    const int64_t width = s.heads * s.head_dim;
    const auto x = Random(s.batch * s.seq * width, 1);
    const auto cosine = Random(s.table_rows * s.head_dim / 2, 2);
    const auto sine = Random(s.table_rows * s.head_dim / 2, 3);
    for (const RopeDirection direction :
         {RopeDirection::kForward, RopeDirection::kBackward}) {
      for (const int64_t stride : {int64_t{0}, width + 5}) {
        CheckOp(
            [&](Harness& h) -> Outputs {
              const Tensor y =
                  h.InOut(Shape({s.batch * s.seq, width}), x, stride);
              const Shape table({s.table_rows, s.head_dim / 2});
              h.ops().Rope(h.stream(), {.x = y,
                                        .cosine = h.In(table, cosine),
                                        .sine = h.In(table, sine),
                                        .seq = s.seq,
                                        .head_dim = s.head_dim,
                                        .direction = direction});
              return {{"x", h.Read(y)}};
            },
            {{"x", Rotated(s, x, cosine, sine,
                           direction == RopeDirection::kForward ? 1 : -1)}},
            1e-6);
      }
    }
  }
}

TEST_P(DeviceTest, RopeGradient) {
  const Shape shape({5, 12}), table({5, 3});
  const auto cosine = Random(15, 2), sine = Random(15, 3);
  const auto rotate = [&](Harness& h, const std::vector<float>& x,
                          RopeDirection direction) {
    const Tensor y = h.InOut(shape, x);
    h.ops().Rope(h.stream(), {.x = y,
                              .cosine = h.In(table, cosine),
                              .sine = h.In(table, sine),
                              .seq = 5,
                              .head_dim = 6,
                              .direction = direction});
    return h.Read(y);
  };
  CheckGradient(
      {.inputs = {Random(60, 1)},
       .forward =
           [&](Harness& h, const Inputs& in) {
             return rotate(h, in[0], RopeDirection::kForward);
           },
       .backward =
           [&](Harness& h, const Inputs&, const std::vector<float>& dy) {
             return Gradients{rotate(h, dy, RopeDirection::kBackward)};
           }});
}

}  // namespace
}  // namespace penstock::server::device
