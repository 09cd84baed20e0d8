#include "coordinator/spec/scalars.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::coordinator::spec {
namespace {

struct Unit {
  absl::string_view name;
  int64_t bytes;
};
constexpr Unit kByteUnits[] = {{"KiB", int64_t{1} << 10},
                               {"MiB", int64_t{1} << 20},
                               {"GiB", int64_t{1} << 30}};

// Digits, at most one point, an optional exponent: what YAML 1.2 calls a
// number, without its inf and nan.
bool LooksLikeNumber(absl::string_view text) {
  absl::ConsumePrefix(&text, "-");
  int digits = 0;
  int points = 0;
  while (!text.empty() && (absl::ascii_isdigit(text[0]) || text[0] == '.')) {
    (text[0] == '.' ? points : digits)++;
    text.remove_prefix(1);
  }
  if (digits == 0 || points > 1) return false;
  if (text.empty()) return true;
  if (!absl::ConsumePrefix(&text, "e") && !absl::ConsumePrefix(&text, "E")) {
    return false;
  }
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return true;
}

// Doubles hold every whole number up to here.
constexpr double kExactWhole = 9007199254740992.0;

std::optional<int64_t> ToWhole(double value) {
  if (std::abs(value) > kExactWhole || value != std::floor(value)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

}  // namespace

std::optional<double> ParseNumber(absl::string_view text) {
  double value = 0;
  if (!LooksLikeNumber(text) || !absl::SimpleAtod(text, &value) ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> ParseWhole(absl::string_view text) {
  const std::optional<double> number = ParseNumber(text);
  if (!number.has_value()) return std::nullopt;
  int64_t whole = 0;
  if (absl::SimpleAtoi(text, &whole)) return whole;
  return ToWhole(*number);
}

bool FitsF32(double value) {
  return value == 0 || (std::abs(value) >= std::numeric_limits<float>::min() &&
                        std::abs(value) <= std::numeric_limits<float>::max());
}

std::optional<int64_t> ParseByteSize(absl::string_view text) {
  for (const Unit& unit : kByteUnits) {
    absl::string_view count = text;
    if (!absl::ConsumeSuffix(&count, unit.name)) continue;
    const std::optional<double> number =
        ParseNumber(absl::StripTrailingAsciiWhitespace(count));
    if (!number.has_value() || *number < 0) return std::nullopt;
    return ToWhole(*number * unit.bytes);
  }
  const std::optional<int64_t> bytes = ParseWhole(text);
  if (!bytes.has_value() || *bytes < 0) return std::nullopt;
  return bytes;
}

std::optional<absl::Duration> ParseTime(absl::string_view text) {
  if (text == "0") return absl::ZeroDuration();
  for (const char c : text) {
    if (!absl::ascii_isdigit(c) && !absl::StrContains(".numsh", c)) {
      return std::nullopt;
    }
  }
  absl::Duration time;
  if (text.empty() || !absl::ParseDuration(text, &time) ||
      time == absl::InfiniteDuration()) {
    return std::nullopt;
  }
  return time;
}

std::optional<int64_t> ParseShare(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "%")) return std::nullopt;
  const std::optional<double> percent =
      ParseNumber(absl::StripTrailingAsciiWhitespace(text));
  if (!percent.has_value() || *percent <= 0 || *percent >= 100) {
    return std::nullopt;
  }
  const double millionths = *percent * 1e4;
  const int64_t rounded = std::llround(millionths);
  // 0.29 % is 2900 millionths, whatever 0.29's nearest double is.
  if (rounded == 0 || std::abs(millionths - rounded) > 1e-6) {
    return std::nullopt;
  }
  return rounded;
}

std::string FormatNumber(double value) {
  char buffer[64];
  // The shortest digits either way; fixed where a person reads it better.
  const double magnitude = std::abs(value);
  const bool fixed = value == 0 || (magnitude >= 1e-4 && magnitude < 1e15);
  const auto result = std::to_chars(
      buffer, buffer + sizeof(buffer), value,
      fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(buffer, result.ptr);
}

std::string FormatByteSize(int64_t bytes) {
  for (int i = 2; i >= 0; --i) {
    const Unit& unit = kByteUnits[i];
    if (bytes > 0 && bytes % unit.bytes == 0) {
      return absl::StrCat(bytes / unit.bytes, unit.name);
    }
  }
  return absl::StrCat(bytes);
}

std::string FormatTime(absl::Duration time) {
  return time == absl::ZeroDuration() ? "0s" : absl::FormatDuration(time);
}

std::string FormatShare(int64_t millionths) {
  return absl::StrCat(FormatNumber(millionths / 1e4), "%");
}

}  // namespace penstock::coordinator::spec
