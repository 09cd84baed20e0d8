#include "common/log/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/text/quote.h"
#include "common/text/utf8.h"

namespace penstock::common::log {
namespace {

// The process-wide log settings: written once by main before threads start,
// read afterwards. The only mutable global in the project; a log line must be
// possible anywhere, also where nothing is passed in.
Options& GlobalOptions() {
  static Options* const options = new Options;
  return *options;
}

const char* Name(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "INFO";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kError:
      return "ERROR";
    case Severity::kFatal:
      return "FATAL";
  }
  return "?";
}

// Of UTF-8.
std::string JsonEscape(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

void Configure(const Options& options) { GlobalOptions() = options; }

Line::Line(Severity severity, const char* file, int line)
    : severity_(severity), file_(file), line_(line) {}

Line::~Line() {
  const Options& options = GlobalOptions();
  if (severity_ >= options.minimum || severity_ == Severity::kFatal) {
    const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ",
                                              absl::Now(), absl::UTCTimeZone());
    const std::string message = text::CutAfter(kMaxMessageBytes, stream_.str());
    std::string line;
    if (options.format == Format::kJson) {
      line = absl::StrFormat(
          "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"%s\","
          "\"source\":\"%s:%d\",\"message\":\"%s\"}\n",
          time, Name(severity_), JsonEscape(options.process), file_, line_,
          JsonEscape(text::Utf8OrEscaped(message)));
    } else {
      line =
          absl::StrFormat("%s %s %s%s%s:%d] %s\n", time, Name(severity_),
                          options.process, options.process.empty() ? "" : " ",
                          file_, line_, text::OneLine(message));
    }
    // One write: lines of several threads and processes do not mix.
    size_t written = 0;
    while (written < line.size()) {
      const ssize_t n =
          write(STDERR_FILENO, line.data() + written, line.size() - written);
      if (n <= 0) break;
      written += static_cast<size_t>(n);
    }
  }
  if (severity_ == Severity::kFatal) std::abort();
}

}  // namespace penstock::common::log
