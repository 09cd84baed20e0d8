#include <cmath>

#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Size {
  int64_t rows, width;
};
constexpr Size kSizes[] = {{0, 3},  {1, 1},    {1, 2},   {7, 13},
                           {5, 64}, {19, 127}, {70, 256}};
constexpr float kEpsilon = 1e-5f;
constexpr double kTolerance = 4e-6;

// Statistics and gradients of one norm in f64.
struct Norm {
  std::vector<double> y, mean, rstd, normalised;

  Norm(const Size& s, const std::vector<float>& x,
       const std::vector<float>& gain, const std::vector<float>& bias)
      : y(x.size()), mean(s.rows), rstd(s.rows), normalised(x.size()) {
    const bool centred = !bias.empty();
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* row = x.data() + r * s.width;
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < s.width; ++i) sum += row[i];
      mean[r] = centred ? sum / s.width : 0;
      for (int64_t i = 0; i < s.width; ++i) {
        squares += std::pow(row[i] - mean[r], 2);
      }
      rstd[r] = 1 / std::sqrt(squares / s.width + kEpsilon);
      for (int64_t i = 0; i < s.width; ++i) {
        const double n = (row[i] - mean[r]) * rstd[r];
        normalised[r * s.width + i] = n;
        y[r * s.width + i] = n * gain[i] + (centred ? bias[i] : 0);
      }
    }
  }

  std::vector<double> Dx(const Size& s, const std::vector<float>& gain,
                         const std::vector<float>& dy, bool centred) const {
    std::vector<double> dx(y.size());
    for (int64_t r = 0; r < s.rows; ++r) {
      double sum_g = 0, sum_gn = 0;
      for (int64_t i = 0; i < s.width; ++i) {
        const double g = double{dy[r * s.width + i]} * gain[i];
        sum_g += g;
        sum_gn += g * normalised[r * s.width + i];
      }
      for (int64_t i = 0; i < s.width; ++i) {
        const double g = double{dy[r * s.width + i]} * gain[i];
        dx[r * s.width + i] =
            rstd[r] * (g - (centred ? sum_g / s.width : 0) -
                       normalised[r * s.width + i] * sum_gn / s.width);
      }
    }
    return dx;
  }
};

std::vector<float> Floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

TEST_P(DeviceTest, LayerNormForward) {
  for (const Size& s : kSizes) {
    const auto x = Random(s.rows * s.width, 1, 3), gain = Random(s.width, 2);
    const auto bias = Random(s.width, 3);
    const Norm norm(s, x, gain, bias);
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Tensor y = h.Out(Shape({s.rows, s.width}));
          const Tensor mean = h.Out(Shape({s.rows}));
          const Tensor rstd = h.Out(Shape({s.rows}));
          h.ops().LayerNormForward(h.stream(),
                                   {.x = h.In(Shape({s.rows, s.width}), x),
                                    .gain = h.In(Shape({s.width}), gain),
                                    .bias = h.In(Shape({s.width}), bias),
                                    .epsilon = kEpsilon,
                                    .y = y,
                                    .mean = mean,
                                    .rstd = rstd});
          return {
              {"y", h.Read(y)}, {"mean", h.Read(mean)}, {"rstd", h.Read(rstd)}};
        },
        {{"y", norm.y}, {"mean", norm.mean}, {"rstd", norm.rstd}}, kTolerance);
  }
}

TEST_P(DeviceTest, RmsNormForward) {
  for (const Size& s : kSizes) {
    const auto x = Random(s.rows * s.width, 1, 3), gain = Random(s.width, 2);
    const Norm norm(s, x, gain, {});
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Tensor y = h.Out(Shape({s.rows, s.width}));
          const Tensor rstd = h.Out(Shape({s.rows}));
          h.ops().LayerNormForward(h.stream(),
                                   {.x = h.In(Shape({s.rows, s.width}), x),
                                    .gain = h.In(Shape({s.width}), gain),
                                    .epsilon = kEpsilon,
                                    .y = y,
                                    .rstd = rstd});
          return {{"y", h.Read(y)}, {"rstd", h.Read(rstd)}};
        },
        {{"y", norm.y}, {"rstd", norm.rstd}}, kTolerance);
  }
}

// The dx of both norms; `residual` and aliasing in `run`.
struct Variant {
  bool centred, residual, in_place;
};
constexpr Variant kVariants[] = {{true, false, false}, {true, true, false},
                                 {true, true, true},   {false, false, false},
                                 {false, true, false}, {false, true, true}};

TEST_P(DeviceTest, LayerNormBackwardInput) {
  for (const Size& s : kSizes) {
    for (const Variant& v : kVariants) {
      // One value, or two centred ones, normalise to -1 or 1 whatever they
      // are: dx is rounding noise around 0.
      if (s.width <= (v.centred ? 2 : 1)) continue;
      const auto x = Random(s.rows * s.width, 1, 3), gain = Random(s.width, 2);
      const auto dy = Random(s.rows * s.width, 4);
      const auto residual = Random(s.rows * s.width, 5);
      const Norm norm(
          s, x, gain,
          v.centred ? std::vector<float>(s.width) : std::vector<float>());
      std::vector<double> dx = norm.Dx(s, gain, dy, v.centred);
      for (size_t i = 0; v.residual && i < dx.size(); ++i) dx[i] += residual[i];
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({s.rows, s.width});
            const Tensor add = v.in_place   ? h.InOut(shape, residual)
                               : v.residual ? h.In(shape, residual)
                                            : Tensor();
            const Tensor result = v.in_place ? add : h.Out(shape);
            h.ops().LayerNormBackwardInput(
                h.stream(),
                {.x = h.In(shape, x),
                 .gain = h.In(Shape({s.width}), gain),
                 .mean = v.centred ? h.In(Shape({s.rows}), Floats(norm.mean))
                                   : Tensor(),
                 .rstd = h.In(Shape({s.rows}), Floats(norm.rstd)),
                 .dy = h.In(shape, dy),
                 .residual = add,
                 .dx = result});
            return {{"dx", h.Read(result)}};
          },
          {{"dx", dx}}, 1e-5);
    }
  }
}

TEST_P(DeviceTest, LayerNormBackwardInputMayOverwriteDy) {
  const Size s = {.rows = 6, .width = 21};
  const auto x = Random(s.rows * s.width, 1, 3), gain = Random(s.width, 2);
  const auto dy = Random(s.rows * s.width, 4);
  const Norm norm(s, x, gain, std::vector<float>(s.width));
  CheckOp(
      [&](Harness& h) -> Outputs {
        const Shape shape({s.rows, s.width});
        const Tensor gradient = h.InOut(shape, dy);
        h.ops().LayerNormBackwardInput(
            h.stream(), {.x = h.In(shape, x),
                         .gain = h.In(Shape({s.width}), gain),
                         .mean = h.In(Shape({s.rows}), Floats(norm.mean)),
                         .rstd = h.In(Shape({s.rows}), Floats(norm.rstd)),
                         .dy = gradient,
                         .dx = gradient});
        return {{"dx", h.Read(gradient)}};
      },
      {{"dx", norm.Dx(s, gain, dy, true)}}, 1e-5);
}

TEST_P(DeviceTest, LayerNormBackwardWeightStoresAndAdds) {
  for (const Size& s : kSizes) {
    if (s.width == 1) continue;
    for (const bool centred : {true, false}) {
      for (const bool add : {false, true}) {
        const auto x = Random(s.rows * s.width, 1, 3);
        const auto gain = Random(s.width, 2), dy = Random(s.rows * s.width, 4);
        const auto old_gain = Random(s.width, 5), old_bias = Random(s.width, 6);
        const Norm norm(
            s, x, gain,
            centred ? std::vector<float>(s.width) : std::vector<float>());
        std::vector<double> dgain(s.width), dbias(s.width);
        for (int64_t i = 0; i < s.width && add; ++i) {
          dgain[i] = old_gain[i];
          dbias[i] = old_bias[i];
        }
        for (int64_t i = 0; i < s.rows * s.width; ++i) {
          dgain[i % s.width] += dy[i] * norm.normalised[i];
          dbias[i % s.width] += dy[i];
        }
        Outputs expected = {{"dgain", dgain}};
        if (centred) expected.push_back({"dbias", dbias});
        CheckOp(
            [&](Harness& h) -> Outputs {
              const Shape shape({s.rows, s.width}), vector({s.width});
              const auto output = [&](const std::vector<float>& old) {
                return add ? h.InOut(vector, old) : h.Out(vector);
              };
              const Tensor gains = output(old_gain);
              const Tensor biases = centred ? output(old_bias) : Tensor();
              h.ops().LayerNormBackwardWeight(
                  h.stream(),
                  {.x = h.In(shape, x),
                   .mean = centred ? h.In(Shape({s.rows}), Floats(norm.mean))
                                   : Tensor(),
                   .rstd = h.In(Shape({s.rows}), Floats(norm.rstd)),
                   .dy = h.In(shape, dy),
                   .dgain = gains,
                   .dbias = biases,
                   .accumulate = add ? Accumulate::kAdd : Accumulate::kStore});
              Outputs outputs = {{"dgain", h.Read(gains)}};
              if (centred) outputs.push_back({"dbias", h.Read(biases)});
              return outputs;
            },
            expected, 1e-5);
      }
    }
  }
}

TEST_P(DeviceTest, LayerNormGradients) {
  constexpr int64_t kRows = 5, kWidth = 19;
  const Shape shape({kRows, kWidth}), vector({kWidth}), rows({kRows});
  for (const bool centred : {true, false}) {
    Inputs inputs = {Random(kRows * kWidth, 1, 2), Random(kWidth, 2)};
    if (centred) inputs.push_back(Random(kWidth, 3));
    struct Forward {
      Tensor x, gain, y, mean, rstd;
    };
    const auto forward = [&](Harness& h, const Inputs& in) {
      Forward f{.x = h.In(shape, in[0]),
                .gain = h.In(vector, in[1]),
                .y = h.Out(shape),
                .mean = centred ? h.Out(rows) : Tensor(),
                .rstd = h.Out(rows)};
      h.ops().LayerNormForward(
          h.stream(), {.x = f.x,
                       .gain = f.gain,
                       .bias = centred ? h.In(vector, in[2]) : Tensor(),
                       .epsilon = kEpsilon,
                       .y = f.y,
                       .mean = f.mean,
                       .rstd = f.rstd});
      return f;
    };
    CheckGradient(
        {.inputs = inputs,
         .forward = [&](Harness& h,
                        const Inputs& in) { return h.Read(forward(h, in).y); },
         .backward =
             [&](Harness& h, const Inputs& in, const std::vector<float>& dy) {
               const Forward f = forward(h, in);
               const Tensor grad = h.In(shape, dy);
               const Tensor dx = h.Out(shape), dgain = h.Out(vector);
               const Tensor dbias = centred ? h.Out(vector) : Tensor();
               h.ops().LayerNormBackwardInput(h.stream(), {.x = f.x,
                                                           .gain = f.gain,
                                                           .mean = f.mean,
                                                           .rstd = f.rstd,
                                                           .dy = grad,
                                                           .dx = dx});
               h.ops().LayerNormBackwardWeight(h.stream(), {.x = f.x,
                                                            .mean = f.mean,
                                                            .rstd = f.rstd,
                                                            .dy = grad,
                                                            .dgain = dgain,
                                                            .dbias = dbias});
               Gradients gradients = {h.Read(dx), h.Read(dgain)};
               if (centred) gradients.push_back(h.Read(dbias));
               return gradients;
             }});
  }
}

}  // namespace
}  // namespace penstock::server::device
