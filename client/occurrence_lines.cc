#include "client/occurrence_lines.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/json_output.h"

namespace penstock::client {

void OccurrenceLines::Add(const v1::Occurrence& what, const v1::Job& job) {
  if (what.severity() == v1::Occurrence::SEVERITY_INFO &&
      what.kind() != "WAITING_FOR_STAGES") {
    return;
  }
  if (what.severity() == v1::Occurrence::SEVERITY_ERROR &&
      !what.consequence() && !job.has_start_time()) {
    held_back_.push_back(what);
  } else {
    Show(what);
  }
}

void OccurrenceLines::End(const v1::Job& job) {
  for (const v1::Occurrence& what : held_back_) {
    if (!absl::StartsWith(job.cause().message(), what.message())) Show(what);
  }
  held_back_.clear();
}

void OccurrenceLines::Show(const v1::Occurrence& what) {
  progress_.Message(absl::StrCat(what.consequence() ? "  (consequence) " : "",
                                 what.kind(), ": ", Printable(what.message())));
}

}  // namespace penstock::client
