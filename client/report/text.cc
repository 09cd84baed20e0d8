#include "client/report/text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/text/utf8.h"

namespace penstock::client::report {

using common::text::ContinuesCharacter;

namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Without the zeros after the point that say nothing.
std::string WithoutTrailingZeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string Escape(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
          absl::StrAppend(&out, kReplacement);
        } else {
          out.push_back(c);
        }
      }
    }
  }
  return out;
}

std::string Coordinate(double value, int decimals) {
  if (!std::isfinite(value)) return "0";
  std::string text =
      WithoutTrailingZeros(absl::StrFormat("%.*f", decimals, value));
  return text == "-0" ? "0" : text;
}

std::string Count(int64_t value) {
  const std::string digits = absl::StrCat(value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool group = (digits.size() - i) % 3 == 0;
    if (group && !out.empty() && out != "-") out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string Bytes(double bytes) {
  if (bytes < 1024) return absl::StrFormat("%.0f B", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (bytes /= 1024; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  return absl::StrFormat("%.*f %s", bytes < 10 ? 2 : 1, bytes, units[unit]);
}

std::string Percent(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

std::string Seconds(double seconds) {
  const double size = std::abs(seconds);
  const auto with = [](double value, const char* unit) {
    const double big = std::abs(value);
    return absl::StrFormat("%.*f %s",
                           big < 10    ? 2
                           : big < 100 ? 1
                                       : 0,
                           value, unit);
  };
  if (size == 0) return "0 s";
  if (size < 1e-3) return with(seconds * 1e6, "µs");
  if (size < 1) return with(seconds * 1e3, "ms");
  if (size < 120) return with(seconds, "s");
  if (size < 7200) {
    const auto whole = static_cast<int64_t>(std::llround(seconds));
    return absl::StrFormat("%d min %d s", whole / 60, whole % 60);
  }
  const auto minutes = static_cast<int64_t>(std::llround(seconds / 60));
  return absl::StrFormat("%d h %d min", minutes / 60, minutes % 60);
}

std::string Loss(double value) { return absl::StrFormat("%.4f", value); }

std::string ShortNumber(double value) {
  const double size = std::abs(value);
  if (size >= 1e12 || (size > 0 && size < 1e-3)) {
    return absl::StrFormat("%.3g", value);
  }
  if (size >= 1e9) return absl::StrFormat("%.3gG", value / 1e9);
  if (size >= 1e6) return absl::StrFormat("%.3gM", value / 1e6);
  if (size >= 1e4) return absl::StrFormat("%.3gk", value / 1e3);
  if (size >= 1e3) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.3g", value);
}

std::string Truncated(absl::string_view text, int characters) {
  std::string out;
  int count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!ContinuesCharacter(text[i])) {
      if (++count > characters) {
        while (!out.empty() && ContinuesCharacter(out.back())) out.pop_back();
        if (!out.empty()) out.pop_back();
        return absl::StrCat(out, "…");
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

std::string EscapedName(absl::string_view text) {
  return Escape(Truncated(text, kMostName));
}

std::string MoreIn(absl::string_view file, size_t count) {
  if (count == 0) return "";
  return absl::StrFormat("<p class=\"note\">%s more in %s.</p>\n",
                         Count(static_cast<int64_t>(count)), file);
}

}  // namespace penstock::client::report
