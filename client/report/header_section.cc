#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/report/job_yaml.h"
#include "client/report/sections.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

// It says why the job failed, maybe with a schedule's grid.
constexpr int kMostCauseCharacters = 10'000;

struct Tile {
  std::string name;
  std::string value;
  std::string note;
};

void AddTile(const Tile& tile, std::string& out) {
  if (tile.value.empty()) return;
  absl::StrAppendFormat(&out,
                        "<div class=\"tile\"><div class=\"tile-name\">%s</div>"
                        "<div class=\"tile-value\">%s</div>"
                        "<div class=\"tile-note\">%s</div></div>\n",
                        tile.name, tile.value, tile.note);
}

template <typename Format>
std::string OrEmpty(const std::optional<double>& value, Format format) {
  return value.has_value() ? format(*value) : "";
}

std::string Tiles(const RunSummary& summary) {
  std::string out;
  AddTile({"Final loss", OrEmpty(summary.final_loss, Loss), "nats a token"},
          out);
  AddTile({"Validation loss", OrEmpty(summary.validation_loss, Loss),
           "nats a token"},
          out);
  AddTile({"Speed",
           OrEmpty(summary.tokens_per_second,
                   [](double v) {
                     return absl::StrCat(v < 1e4
                                             ? Count(static_cast<int64_t>(v))
                                             : ShortNumber(v),
                                         "<small> tokens/s</small>");
                   }),
           summary.tokens.has_value()
               ? absl::StrCat(Count(*summary.tokens), " tokens in all")
               : ""},
          out);
  AddTile({"Step", OrEmpty(summary.step_seconds_p50, Seconds),
           OrEmpty(summary.step_seconds_p90,
                   [](double v) {
                     return absl::StrCat("median, p90 ", Seconds(v));
                   })},
          out);
  AddTile({"Bubble", OrEmpty(summary.bubble_rate.measured, Percent),
           OrEmpty(summary.bubble_rate.predicted,
                   [](double v) {
                     return absl::StrCat("plan predicted ", Percent(v));
                   })},
          out);
  return out.empty() ? out
                     : absl::StrCat("<div class=\"tiles\">\n", out, "</div>\n");
}

// "2026-11-29 19:02:31 UTC, took 3 min 12 s" from the first and last event.
std::string When(const std::vector<JobEvent>& events) {
  absl::Time first, last;
  std::string error;
  if (events.empty() ||
      !absl::ParseTime(absl::RFC3339_full, events.front().time, &first,
                       &error) ||
      !absl::ParseTime(absl::RFC3339_full, events.back().time, &last, &error)) {
    return "";
  }
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", first, absl::UTCTimeZone()),
      ", took ", Seconds(absl::ToDoubleSeconds(last - first)));
}

std::string Banner(const RunSummary& summary) {
  if (summary.reason.empty() && summary.cause_message.empty()) return "";
  const bool failed = summary.state == "FAILED";
  std::string out = absl::StrFormat(
      "<div class=\"banner %s\"><strong>%s</strong>", failed ? "bad" : "plain",
      EscapedName(summary.reason.empty() ? summary.state : summary.reason));
  if (!summary.cause_stage.empty()) {
    absl::StrAppend(&out, " on ", EscapedName(summary.cause_stage));
  }
  if (!summary.cause_message.empty()) {
    absl::StrAppend(
        &out, "<div>",
        Escape(Truncated(summary.cause_message, kMostCauseCharacters)),
        "</div>");
  }
  absl::StrAppend(&out, "</div>\n");
  return out;
}

absl::string_view StateStyle(const std::string& state) {
  if (state == "SUCCEEDED") return "good";
  if (state == "FAILED") return "bad";
  return "plain";
}

// Of the summary, else of job.yaml.
std::string NameOf(const RunFiles& files) {
  if (files.summary.has_value() && !files.summary->name.empty()) {
    return files.summary->name;
  }
  const auto keys = ResolvedKeys(files.job_yaml);
  const auto name = keys.find("name");
  return name != keys.end() ? name->second : "A job without a name";
}

}  // namespace

std::string HeaderSection(const RunFiles& files) {
  const RunSummary none;
  const RunSummary& summary = files.summary.has_value() ? *files.summary : none;
  std::string out =
      "<header>\n<div class=\"brand\"><svg viewBox=\"0 0 24 24\" "
      "aria-hidden=\"true\"><path class=\"b1\" d=\"M2 4h9v4H2z\"/>"
      "<path class=\"b2\" d=\"M7 10h9v4H7z\"/><path class=\"b3\" "
      "d=\"M12 16h10v4H12z\"/></svg>Penstock <span>training "
      "report</span></div>\n";
  absl::StrAppend(&out, "<h1>", EscapedName(NameOf(files)));
  if (!summary.state.empty()) {
    absl::StrAppendFormat(&out, " <span class=\"pill %s\">%s</span>",
                          StateStyle(summary.state),
                          EscapedName(summary.state));
  }
  absl::StrAppend(&out, "</h1>\n<p class=\"sub\">");
  std::string sub;
  const auto part = [&sub](const std::string& text) {
    if (text.empty()) return;
    absl::StrAppend(&sub, sub.empty() ? "" : " · ", text);
  };
  part(EscapedName(summary.id));
  if (summary.steps.has_value()) {
    part(absl::StrCat(Count(*summary.steps), " steps"));
  } else if (!files.metrics.empty()) {
    part(absl::StrCat(Count(files.metrics.back().step), " steps"));
  }
  part(When(files.events));
  absl::StrAppend(&out, sub, "</p>\n", Banner(summary), Tiles(summary));
  if (!files.summary.has_value()) {
    absl::StrAppend(&out,
                    "<p class=\"note\">There is no summary.json here: the job "
                    "has not ended, or ended before it could write one.</p>\n");
  }
  absl::StrAppend(&out, "</header>\n");
  return out;
}

}  // namespace penstock::client::report
