#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/sections.h"
#include "client/report/text.h"
#include "common/ids/result_names.h"

namespace penstock::client::report {
namespace {

constexpr size_t kMostShown = 100;    // Of each list.
constexpr int kMostCharacters = 500;  // Of each message.

// What the failure began with, what else broke, what followed.
int OrderOf(const JobEvent& event, const std::string& reason) {
  if (event.consequence) return 2;
  return event.kind == reason ? 0 : 1;
}

bool IsFailure(const JobEvent& event) {
  return event.severity == "ERROR" || event.consequence;
}

// "19:02:33.125" of "2026-11-29T19:02:33.125000Z".
std::string ClockOf(const std::string& time) {
  return time.size() >= 23 && time[10] == 'T' ? time.substr(11, 12) : time;
}

std::string Item(const JobEvent& event, bool first_cause) {
  const absl::string_view style = event.consequence             ? "follows"
                                  : event.severity == "ERROR"   ? "bad"
                                  : event.severity == "WARNING" ? "warn"
                                                                : "info";
  std::string out = absl::StrFormat(
      "<li class=\"%s\"><time title=\"%s\">%s</time><div><b>%s</b>", style,
      EscapedName(event.time), EscapedName(ClockOf(event.time)),
      EscapedName(event.kind));
  if (first_cause) absl::StrAppend(&out, " <em>first cause</em>");
  if (event.consequence) absl::StrAppend(&out, " <em>consequence</em>");
  std::string where = EscapedName(event.stage);
  if (event.step > 0) {
    absl::StrAppend(&where, where.empty() ? "" : ", ", "step ",
                    Count(event.step));
  }
  if (!where.empty()) {
    absl::StrAppend(&out, " <span class=\"soft\">", where, "</span>");
  }
  absl::StrAppend(&out, " <p>",
                  Escape(Truncated(event.message, kMostCharacters)),
                  "</p></div></li>\n");
  return out;
}

std::string More(size_t count) {
  return MoreIn(common::ids::kEventsFile, count - std::min(count, kMostShown));
}

std::string Failures(const RunFiles& files) {
  const std::string reason =
      files.summary.has_value() ? files.summary->reason : "";
  std::vector<const JobEvent*> failures;
  for (const JobEvent& event : files.events) {
    if (IsFailure(event)) failures.push_back(&event);
  }
  if (failures.empty()) return "";
  std::stable_sort(failures.begin(), failures.end(),
                   [&](const JobEvent* a, const JobEvent* b) {
                     return OrderOf(*a, reason) < OrderOf(*b, reason);
                   });
  std::string out =
      "<section class=\"card\">\n<h2>What went wrong</h2>\n<ul "
      "class=\"events\">\n";
  for (size_t i = 0; i < std::min(failures.size(), kMostShown); ++i) {
    out += Item(*failures[i], i == 0 && OrderOf(*failures[i], reason) == 0);
  }
  absl::StrAppend(&out, "</ul>\n", More(failures.size()), "</section>\n");
  return out;
}

std::string Others(const RunFiles& files) {
  std::string items;
  size_t count = 0;
  for (const JobEvent& event : files.events) {
    if (IsFailure(event)) continue;
    if (++count <= kMostShown) items += Item(event, false);
  }
  if (count == 0) return "";
  return absl::StrCat(
      "<section class=\"card\">\n<h2>Events</h2>\n<ul class=\"events\">\n",
      items, "</ul>\n", More(count), "</section>\n");
}

}  // namespace

std::string EventsSection(const RunFiles& files) {
  return absl::StrCat(Failures(files), Others(files));
}

}  // namespace penstock::client::report
