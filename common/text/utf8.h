// UTF-8 (RFC 3629), the form of all text that travels in messages and files.
#ifndef PENSTOCK_COMMON_TEXT_UTF8_H_
#define PENSTOCK_COMMON_TEXT_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::common::text {

// Bytes of the well-formed sequence at the front of `bytes`; 0: there is none.
// Overlong forms, surrogates and what is beyond U+10FFFF are none. REQUIRES:
// not empty.
size_t Utf8SequenceBytes(absl::string_view bytes);

bool IsUtf8(absl::string_view bytes);

// Whether a byte of UTF-8 goes on with a character that began before it.
constexpr bool ContinuesCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Characters of UTF-8 text, for what is laid out by them: code points, each
// taken to be one column wide.
size_t CharacterCount(absl::string_view utf8);

// `bytes`, with "\xff" in place of each that is not UTF-8: for names that come
// from elsewhere. A message with others cannot be parsed by its receiver.
std::string Utf8OrEscaped(absl::string_view bytes);

// Bytes of the control character at the front of `bytes` (C0, DEL or, as UTF-8,
// C1), which a terminal might obey; 0: there is none, or it is a tab, a line
// feed or a carriage return. REQUIRES: not empty.
size_t ControlBytes(absl::string_view bytes);

// Whether bytes are text that a message, a log line and a YAML parser can take:
// the offset of the first byte that is not part of a well-formed sequence, or
// that ControlBytes() knows; npos where there is none.
size_t FindNotText(absl::string_view bytes);

}  // namespace penstock::common::text

#endif  // PENSTOCK_COMMON_TEXT_UTF8_H_
