#include "common/ids/generated_ids.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/ids/names.h"
#include "common/log/log.h"

namespace penstock::common::ids {

std::string MakeJobId(absl::string_view name, const RandomSource& random) {
  CHECK_OK(CheckJobName(name));
  constexpr absl::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id = absl::StrCat(name, "-");
  for (int i = 0; i < 5; ++i) {
    // 64 bits over 36 letters: the bias is below 2^-58.
    id += kLetters[random() % kLetters.size()];
  }
  return id;
}

std::string MakeUuid(const RandomSource& random) {
  uint64_t high = random();
  uint64_t low = random();
  high = (high & ~uint64_t{0xf000}) | 0x4000;              // Version 4.
  low = (low & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;  // RFC 4122.
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32,
                         (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                         low & 0xffffffffffff);
}

bool IsUuid(absl::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (dash ? c != '-' : !hex) return false;
  }
  return text[14] == '4' &&
         absl::string_view("89ab").find(text[19]) != absl::string_view::npos;
}

}  // namespace penstock::common::ids
