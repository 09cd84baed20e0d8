#include "common/text/utf8.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace penstock::common::text {
namespace {

struct Form {
  uint8_t first_min, first_max;    // of the first byte
  uint8_t second_min, second_max;  // of the second, where there is one
  size_t length;
};

// Unicode, table 3-7: well-formed UTF-8 (no overlong form, no surrogate).
constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
    {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
    {0xf4, 0xf4, 0x80, 0x8f, 4},
};

}  // namespace

size_t Utf8SequenceBytes(absl::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  for (const Form& form : kForms) {
    if (at(0) < form.first_min || at(0) > form.first_max) continue;
    if (bytes.size() < form.length) return 0;
    if (form.length > 1 &&
        (at(1) < form.second_min || at(1) > form.second_max)) {
      return 0;
    }
    for (size_t i = 2; i < form.length; ++i) {
      if (at(i) < 0x80 || at(i) > 0xbf) return 0;
    }
    return form.length;
  }
  return 0;
}

size_t CharacterCount(absl::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(),
                    [](char byte) { return !ContinuesCharacter(byte); }));
}

bool IsUtf8(absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = Utf8SequenceBytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string Utf8OrEscaped(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = Utf8SequenceBytes(bytes);
    if (length == 0) {
      absl::StrAppend(
          &text, "\\x",
          absl::Hex(static_cast<uint8_t>(bytes[0]), absl::kZeroPad2));
    } else {
      text.append(bytes.data(), length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

size_t ControlBytes(absl::string_view bytes) {
  const auto byte = static_cast<uint8_t>(bytes[0]);
  if (byte == '\t' || byte == '\n' || byte == '\r') return 0;
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || bytes.size() < 2) return 0;
  const auto next = static_cast<uint8_t>(bytes[1]);
  return next >= 0x80 && next <= 0x9f ? 2 : 0;
}

size_t FindNotText(absl::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const absl::string_view rest = bytes.substr(i);
    const size_t length = ControlBytes(rest) > 0 ? 0 : Utf8SequenceBytes(rest);
    if (length == 0) return i;
    i += length;
  }
  return absl::string_view::npos;
}

}  // namespace penstock::common::text
