// How far a training run is from what torch computed, by kind of figure: the
// worst of each, where it was, and how far it may be.
#ifndef PENSTOCK_TESTS_SERVER_MODEL_DEVIATIONS_H_
#define PENSTOCK_TESTS_SERVER_MODEL_DEVIATIONS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::testing {

// The limits are those of docs/numerics.md.
enum class Figure {
  kFirstLoss,      // Of the first step. Relative; so are all of these.
  kSequenceLoss,   // Of the first step, sums over a sequence or micro-batch.
  kFirstGradient,  // Of the tensor's largest element.
  kGradNorm,       // Of every step, before clipping.
  kLossCurve,      // Of every later step.
  kFinalWeight,    // Of the tensor's largest element.
};

// Thread-compatible.
class Deviations {
 public:
  // Relative; where 0 is expected, up to 1e-6 is no deviation.
  void NoteNumber(Figure figure, double actual, double expected,
                  absl::string_view where);
  // `actual` times `scale`, relative to the largest element of `expected`.
  void NoteTensor(Figure figure, absl::Span<const float> actual, double scale,
                  const std::vector<float>& expected, absl::string_view where);
  void Merge(const Deviations& other, absl::string_view where);

  // OK when every figure was noted and all are within their limits; else what
  // was too far off, and where.
  absl::Status Check() const;
  // A line for each kind of figure.
  std::string ToString() const;

 private:
  static constexpr int kFigures = 6;
  struct Worst {
    int count = 0;
    double deviation = 0;  // Infinite where something is no number.
    std::string where;
  };
  void Note(Figure figure, double deviation, absl::string_view where);

  std::array<Worst, kFigures> worst_;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_MODEL_DEVIATIONS_H_
