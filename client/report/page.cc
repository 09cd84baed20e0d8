#include "client/report/page.h"

#include "absl/strings/str_cat.h"
#include "client/report/sections.h"
#include "client/report/style_sheet.h"
#include "client/report/text.h"

namespace penstock::client::report {

std::string Page(const RunFiles& files) {
  const std::string name =
      files.summary.has_value() && !files.summary->name.empty()
          ? files.summary->name
          : "job";
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">"
      "\n<title>",
      EscapedName(name), " · Penstock</title>\n<style>", StyleSheet(),
      "</style>\n</head>\n<body>\n<main>\n", HeaderSection(files),
      StepSection(files), CurvesSection(files), PredictionSection(files),
      StagesSection(files), EventsSection(files), FactsSection(files),
      "</main>\n</body>\n</html>\n");
}

}  // namespace penstock::client::report
