#include "coordinator/spec/value_types.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/text/utf8.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {

using common::text::FindNotText;

namespace {

bool IsPlain(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted;
}

std::string NumberHint(const YamlNode& node) {
  if (node.quoted && ParseNumber(node.scalar).has_value()) {
    return "leave the quotes out";
  }
  return "";
}

bool IsBelowOne(double x) {
  return FitsF32(x) && x >= 0 && static_cast<float>(x) < 1;
}

// Also of a number that is right but for f32.
std::string RoundedHint(const YamlNode& node) {
  const std::optional<double> value = ParseNumber(node.scalar);
  if (!IsPlain(node) || !value.has_value()) return NumberHint(node);
  if (!FitsF32(*value)) {
    return kNotInF32;
  }
  return *value < 1 && static_cast<float>(*value) >= 1
             ? "stages compute in f32, where this is 1; at most 0.99999994"
             : "";
}

std::string ByteSizeHint(const YamlNode& node) {
  const std::string lower = absl::AsciiStrToLower(node.scalar);
  for (const absl::string_view unit : {"k", "m", "g"}) {
    if (absl::EndsWith(lower, unit) ||
        absl::EndsWith(lower, absl::StrCat(unit, "b")) ||
        absl::EndsWith(lower, absl::StrCat(unit, "ib"))) {
      return "the units are KiB, MiB and GiB, powers of 1024";
    }
  }
  return NumberHint(node);
}

std::string TimeHint(const YamlNode& node) {
  if (IsPlain(node) && ParseNumber(node.scalar).has_value()) {
    return absl::StrCat("write ", node.scalar, "s for seconds");
  }
  return "";
}

std::string FlagHint(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return "";
  const std::string lower = absl::AsciiStrToLower(node.scalar);
  for (const absl::string_view yes : {"yes", "on", "1", "y", "true"}) {
    if (lower == yes) return "write true";
  }
  for (const absl::string_view no : {"no", "off", "0", "n", "none", "false"}) {
    if (lower == no) return "write false";
  }
  return "";
}

}  // namespace

bool IsWord(const YamlNode& node, absl::string_view word) {
  return IsPlain(node) && node.scalar == word;
}

ValueType<int64_t> Whole(int64_t min, int64_t max) {
  const bool open_ended = max == std::numeric_limits<int64_t>::max();
  return {
      .expected = min == max ? absl::StrCat(min)
                  : open_ended
                      ? absl::StrCat("a whole number of at least ", min)
                      : absl::StrCat("a whole number from ", min, " to ", max),
      .read = [min, max](const YamlNode& node) -> std::optional<int64_t> {
        if (!IsPlain(node)) return std::nullopt;
        const std::optional<int64_t> value = ParseWhole(node.scalar);
        if (!value.has_value() || *value < min || *value > max) {
          return std::nullopt;
        }
        return value;
      },
      .hint = [max, open_ended](const YamlNode& node) -> std::string {
        const std::optional<double> value = ParseNumber(node.scalar);
        return open_ended && IsPlain(node) && value.has_value() &&
                       *value > static_cast<double>(max)
                   ? absl::StrCat("at most ", max)
                   : NumberHint(node);
      }};
}

ValueType<double> Number(absl::string_view expected, bool (*accepts)(double)) {
  return {.expected = std::string(expected),
          .read = [accepts](const YamlNode& node) -> std::optional<double> {
            if (!IsPlain(node)) return std::nullopt;
            const std::optional<double> value = ParseNumber(node.scalar);
            if (!value.has_value() || !FitsF32(*value) || !accepts(*value)) {
              return std::nullopt;
            }
            return value;
          },
          .hint = RoundedHint};
}

ValueType<double> AnyPositive() {
  return Number("a number above 0", [](double x) { return x > 0; });
}
ValueType<double> NotNegative() {
  return Number("a number of at least 0", [](double x) { return x >= 0; });
}
ValueType<double> AtLeastOne() {
  return Number("a number of at least 1", [](double x) { return x >= 1; });
}
ValueType<double> BelowOne() {
  return Number("a number from 0 to below 1", IsBelowOne);
}
ValueType<double> UpToOne() {
  return Number("a number from 0 to 1",
                [](double x) { return x >= 0 && x <= 1; });
}

ValueType<bool> Flag() {
  return {.expected = "true or false",
          .read = [](const YamlNode& node) -> std::optional<bool> {
            if (IsWord(node, "true")) return true;
            if (IsWord(node, "false")) return false;
            return std::nullopt;
          },
          .hint = FlagHint};
}

ValueType<std::string> Text(absl::string_view expected) {
  return {.expected = std::string(expected),
          .read = [](const YamlNode& node) -> std::optional<std::string> {
            if (node.kind != YamlNode::Kind::kScalar || node.scalar.empty() ||
                node.scalar.find_first_of("\n\r\t") != std::string::npos ||
                FindNotText(node.scalar) != absl::string_view::npos) {
              return std::nullopt;
            }
            return node.scalar;
          },
          .hint = nullptr};
}

ValueType<int64_t> ByteSize() {
  return {.expected = "a size such as 512MiB or 16GiB",
          .read = [](const YamlNode& node) -> std::optional<int64_t> {
            if (!IsPlain(node)) return std::nullopt;
            const std::optional<int64_t> bytes = ParseByteSize(node.scalar);
            return bytes.value_or(0) > 0 ? bytes : std::nullopt;
          },
          .hint = ByteSizeHint};
}

ValueType<absl::Duration> Time() {
  return {.expected = "a time such as 5ms, 30s, 10m or 2h",
          .read = [](const YamlNode& node) -> std::optional<absl::Duration> {
            return IsPlain(node) ? ParseTime(node.scalar) : std::nullopt;
          },
          .hint = TimeHint};
}

}  // namespace penstock::coordinator::spec
