#include "common/ids/names.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/text/quote.h"

namespace penstock::common::ids {
namespace {

bool IsLetter(char c) { return absl::ascii_islower(c); }
bool IsLetterOrDigit(char c) { return IsLetter(c) || absl::ascii_isdigit(c); }

// Letters, digits and `extra` inside; a letter or digit at both ends.
bool IsLabel(absl::string_view name, absl::string_view extra) {
  if (name.empty() || !IsLetterOrDigit(name.front()) ||
      !IsLetterOrDigit(name.back())) {
    return false;
  }
  for (const char c : name) {
    if (!IsLetterOrDigit(c) && extra.find(c) == absl::string_view::npos) {
      return false;
    }
  }
  return true;
}

absl::Status Refuse(absl::string_view what, absl::string_view name,
                    absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", text::Quoted(name), " must be ", rule));
}

bool IsJobLabel(absl::string_view name, size_t max_bytes) {
  return name.size() <= max_bytes && IsLabel(name, "-") &&
         IsLetter(name.front());
}

std::string JobLabelRule(size_t max_bytes) {
  return absl::StrCat("1 to ", max_bytes,
                      " of a-z, 0-9 and -, start with a letter and not end "
                      "with -");
}

}  // namespace

absl::Status CheckJobName(absl::string_view name) {
  if (IsJobLabel(name, kMaxJobNameBytes)) return absl::OkStatus();
  return Refuse("name", name, JobLabelRule(kMaxJobNameBytes));
}

absl::Status CheckJobId(absl::string_view id) {
  if (IsJobLabel(id, kMaxJobIdBytes)) return absl::OkStatus();
  return Refuse("job id", id, JobLabelRule(kMaxJobIdBytes));
}

absl::Status CheckPoolName(absl::string_view name) {
  if (IsJobLabel(name, kMaxJobNameBytes)) return absl::OkStatus();
  return Refuse("pool", name, JobLabelRule(kMaxJobNameBytes));
}

absl::Status CheckStageName(absl::string_view name) {
  if (name.size() <= kMaxStageNameBytes && IsLabel(name, ".-")) {
    return absl::OkStatus();
  }
  return Refuse("stage name", name,
                absl::StrCat("1 to ", kMaxStageNameBytes,
                             " of a-z, 0-9, . and -, start and end with a "
                             "letter or digit"));
}

}  // namespace penstock::common::ids
