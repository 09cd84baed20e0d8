#include "tests/server/model/deviations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::testing {
namespace {

struct Kind {
  const char* name;
  double limit;
};

constexpr Kind kKinds[] = {
    {"loss of the first step", 5e-6}, {"loss a sequence", 5e-6},
    {"gradient of a tensor", 2e-5},   {"gradient norm", 5e-5},
    {"loss of later steps", 1e-5},    {"final weights of a tensor", 1e-3},
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void Deviations::Note(Figure figure, double deviation,
                      absl::string_view where) {
  Worst& worst = worst_[static_cast<int>(figure)];
  if (std::isnan(deviation)) deviation = kInfinity;
  if (worst.count++ == 0 || deviation > worst.deviation) {
    worst.deviation = deviation;
    worst.where = std::string(where);
  }
}

void Deviations::NoteNumber(Figure figure, double actual, double expected,
                            absl::string_view where) {
  const double difference = std::abs(actual - expected);
  if (expected == 0) {
    Note(figure, difference <= 1e-6 ? 0 : kInfinity, where);
  } else {
    Note(figure, difference / std::abs(expected), where);
  }
}

void Deviations::NoteTensor(Figure figure, absl::Span<const float> actual,
                            double scale, const std::vector<float>& expected,
                            absl::string_view where) {
  if (actual.size() != expected.size()) return Note(figure, kInfinity, where);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double difference = std::abs(actual[i] * scale - expected[i]);
    // A NaN would lose every comparison.
    worst = std::isnan(difference) ? kInfinity : std::max(worst, difference);
    if (worst == kInfinity) break;
  }
  if (worst == 0) return Note(figure, 0, where);
  Note(figure, worst / largest, where);
}

void Deviations::Merge(const Deviations& other, absl::string_view where) {
  for (int i = 0; i < kFigures; ++i) {
    const Worst& from = other.worst_[i];
    if (from.count == 0) continue;
    Note(static_cast<Figure>(i), from.deviation,
         absl::StrCat(where, ", ", from.where));
    worst_[i].count += from.count - 1;
  }
}

absl::Status Deviations::Check() const {
  std::string errors;
  for (int i = 0; i < kFigures; ++i) {
    if (worst_[i].count == 0) {
      absl::StrAppend(&errors, kKinds[i].name, " was not looked at; ");
    } else if (!(worst_[i].deviation <= kKinds[i].limit)) {
      absl::StrAppend(&errors, kKinds[i].name, " is ", worst_[i].deviation,
                      " off, may be ", kKinds[i].limit, ": ", worst_[i].where,
                      "; ");
    }
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(errors);
}

std::string Deviations::ToString() const {
  std::string text;
  for (int i = 0; i < kFigures; ++i) {
    absl::StrAppendFormat(&text, "%-26s %9.2e of %7.0e  (%d looked at; %s)\n",
                          kKinds[i].name, worst_[i].deviation, kKinds[i].limit,
                          worst_[i].count, worst_[i].where);
  }
  return text;
}

}  // namespace penstock::testing
