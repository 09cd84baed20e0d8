#include "client/report/op_colors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace penstock::client::report {
namespace {

using Rgb = std::array<int, 3>;

// One of the two has a contrast of at least 4.58 on any colour.
constexpr absl::string_view kDarkText = "#000000";
constexpr absl::string_view kLightText = "#ffffff";

struct Ramp {
  Rgb light;
  Rgb dark;
};

// Light enough for a dark page, dark enough for a light one. Blue, green and
// orange also differ in lightness for eyes that confuse red and green.
Ramp RampOf(char op) {
  switch (op) {
    case 'F':
      return {{0xa9, 0xcd, 0xfb}, {0x1f, 0x57, 0xd0}};
    case 'B':
      return {{0x9b, 0xe3, 0xbd}, {0x0b, 0x7d, 0x52}};
    case 'I':
      return {{0x8f, 0xe1, 0xe4}, {0x0c, 0x74, 0x8c}};
    case 'W':
      return {{0xfd, 0xcb, 0x85}, {0xd0, 0x5f, 0x0b}};
    default:
      return {{0xc8, 0xcd, 0xd6}, {0x6b, 0x72, 0x80}};
  }
}

// Of "#rrggbb".
Rgb ToRgb(absl::string_view color) {
  Rgb rgb = {};
  for (size_t i = 1; i < color.size() && i < 7; ++i) {
    const char c = color[i];
    const int digit = absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10;
    rgb[(i - 1) / 2] = rgb[(i - 1) / 2] * 16 + digit;
  }
  return rgb;
}

// Relative luminance of WCAG 2.
double Luminance(const Rgb& color) {
  const auto linear = [](int channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) +
         0.0722 * linear(color[2]);
}

}  // namespace

int ShadeOf(int micro_batch, int micro_batches) {
  // One alone is of the middle; few use the whole ramp.
  if (micro_batches <= 1) return kShades / 3;
  const int64_t shade =
      int64_t{micro_batch} * (kShades - 1) / (micro_batches - 1);
  return static_cast<int>(std::clamp<int64_t>(shade, 0, kShades - 1));
}

OpColor ColorOf(char op, int shade) {
  const Ramp ramp = RampOf(op);
  Rgb color;
  for (int c = 0; c < 3; ++c) {
    color[c] =
        ramp.light[c] + (ramp.dark[c] - ramp.light[c]) * shade / (kShades - 1);
  }
  const std::string fill =
      absl::StrFormat("#%02x%02x%02x", color[0], color[1], color[2]);
  const absl::string_view text =
      ContrastOf(fill, kDarkText) >= ContrastOf(fill, kLightText) ? kDarkText
                                                                  : kLightText;
  return {.fill = fill, .text = text};
}

double ContrastOf(absl::string_view a, absl::string_view b) {
  const double one = Luminance(ToRgb(a)), two = Luminance(ToRgb(b));
  return (std::max(one, two) + 0.05) / (std::min(one, two) + 0.05);
}

absl::string_view NameOfOp(char op) {
  switch (op) {
    case 'F':
      return "forward";
    case 'B':
      return "backward";
    case 'I':
      return "input gradient";
    case 'W':
      return "weight gradient";
    default:
      return "other";
  }
}

}  // namespace penstock::client::report
