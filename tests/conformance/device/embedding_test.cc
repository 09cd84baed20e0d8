#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Size {
  int64_t batch, seq, vocab, width, positions;
};
constexpr Size kSizes[] = {
    {0, 4, 5, 3, 4}, {1, 1, 1, 1, 1}, {2, 7, 11, 13, 9}, {3, 16, 257, 64, 16}};

TEST_P(DeviceTest, EmbeddingForward) {
  for (const Size& s : kSizes) {
    const int64_t rows = s.batch * s.seq;
    const auto ids = RandomIds(rows, 1, s.vocab);
    const auto tokens = Random(s.vocab * s.width, 2);
    const auto positions = Random(s.positions * s.width, 3);
    for (const bool with_positions : {true, false}) {
      std::vector<double> y(rows * s.width);
      for (int64_t i = 0; i < rows * s.width; ++i) {
        const int64_t r = i / s.width, c = i % s.width;
        y[i] = tokens[ids[r] * s.width + c];
        if (with_positions) y[i] += positions[r % s.seq * s.width + c];
      }
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Tensor result = h.Out(Shape({rows, s.width}));
            h.ops().EmbeddingForward(
                h.stream(),
                {.ids = h.InI32(Shape({s.batch, s.seq}), ids),
                 .tokens = h.In(Shape({s.vocab, s.width}), tokens),
                 .positions =
                     with_positions
                         ? h.In(Shape({s.positions, s.width}), positions)
                         : Tensor(),
                 .y = result});
            return {{"y", h.Read(result)}};
          },
          {{"y", y}}, 1e-7);
    }
  }
}

TEST_P(DeviceTest, EmbeddingBackwardStoresAndAdds) {
  for (const Size& s : kSizes) {
    const int64_t rows = s.batch * s.seq;
    const auto ids = RandomIds(rows, 1, s.vocab);
    const auto dy = Random(rows * s.width, 2);
    const auto old_tokens = Random(s.vocab * s.width, 3);
    const auto old_positions = Random(s.positions * s.width, 4);
    for (const bool add : {false, true}) {
      std::vector<double> dtokens(s.vocab * s.width);
      std::vector<double> dpositions(s.positions * s.width);
      if (add) {
        dtokens.assign(old_tokens.begin(), old_tokens.end());
        dpositions.assign(old_positions.begin(), old_positions.end());
      }
      for (int64_t i = 0; i < rows * s.width; ++i) {
        const int64_t r = i / s.width, c = i % s.width;
        dtokens[ids[r] * s.width + c] += dy[i];
        dpositions[r % s.seq * s.width + c] += dy[i];
      }
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape token_shape({s.vocab, s.width});
            const Shape position_shape({s.positions, s.width});
            const Tensor tokens =
                add ? h.InOut(token_shape, old_tokens) : h.Out(token_shape);
            const Tensor positions =
                add ? h.InOut(position_shape, old_positions)
                    : h.Out(position_shape);
            h.ops().EmbeddingBackward(
                h.stream(),
                {.ids = h.InI32(Shape({s.batch, s.seq}), ids),
                 .dy = h.In(Shape({rows, s.width}), dy),
                 .dtokens = tokens,
                 .dpositions = positions,
                 .accumulate = add ? Accumulate::kAdd : Accumulate::kStore});
            return {{"dtokens", h.Read(tokens)},
                    {"dpositions", h.Read(positions)}};
          },
          {{"dtokens", dtokens}, {"dpositions", dpositions}}, 1e-6);
    }
  }
}

TEST_P(DeviceTest, EmbeddingGradient) {
  // Ids that come twice, and some that never come.
  const Shape ids_shape({2, 5}), tokens({7, 3}), positions({6, 3});
  const Shape rows({10, 3});
  const std::vector<int32_t> ids = {3, 0, 3, 6, 1, 0, 3, 5, 5, 6};
  CheckGradient(
      {.inputs = {Random(21, 1), Random(18, 2)},
       .forward =
           [&](Harness& h, const Inputs& in) {
             const Tensor y = h.Out(rows);
             h.ops().EmbeddingForward(h.stream(),
                                      {.ids = h.InI32(ids_shape, ids),
                                       .tokens = h.In(tokens, in[0]),
                                       .positions = h.In(positions, in[1]),
                                       .y = y});
             return h.Read(y);
           },
       .backward =
           [&](Harness& h, const Inputs&, const std::vector<float>& dy) {
             const Tensor dtokens = h.Out(tokens);
             const Tensor dpositions = h.Out(positions);
             h.ops().EmbeddingBackward(h.stream(),
                                       {.ids = h.InI32(ids_shape, ids),
                                        .dy = h.In(rows, dy),
                                        .dtokens = dtokens,
                                        .dpositions = dpositions});
             return Gradients{h.Read(dtokens), h.Read(dpositions)};
           }});
}

TEST_P(DeviceTest, EmbeddingBackwardWithoutPositions) {
  CheckOp(
      [](Harness& h) -> Outputs {
        const Tensor tokens = h.Out(Shape({3, 2}));
        h.ops().EmbeddingBackward(h.stream(),
                                  {.ids = h.InI32(Shape({1, 2}), {2, 2}),
                                   .dy = h.In(Shape({2, 2}), {1, 2, 4, 8}),
                                   .dtokens = tokens});
        return {{"dtokens", h.Read(tokens)}};
      },
      {{"dtokens", {0, 0, 0, 0, 5, 10}}}, 0);
}

}  // namespace
}  // namespace penstock::server::device
