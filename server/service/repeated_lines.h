// Lines of the log that would come again with every try: a kind's first one at
// once, then at most one in a while that sums up. An hour without a
// coordinator, or with one that is refused, is a hundred lines and not
// thousands.
#ifndef PENSTOCK_SERVER_SERVICE_REPEATED_LINES_H_
#define PENSTOCK_SERVER_SERVICE_REPEATED_LINES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"

namespace penstock::server::service {

// Thread-compatible.
class RepeatedLines {
 public:
  explicit RepeatedLines(absl::Duration interval = absl::Seconds(30))
      : interval_(interval) {}

  // What to log in place of `line`; nullopt: nothing, it is counted in the next
  // one of its kind. Kinds are few, and chosen by the caller.
  std::optional<std::string> Next(absl::string_view kind,
                                  absl::string_view line,
                                  common::time::MonotonicTime now);

  // What was tried has worked: of every kind the next one is the first again.
  void Forget() { kinds_.clear(); }

 private:
  struct Kind {
    common::time::MonotonicTime said;  // When one was logged.
    int left_out = 0;                  // Since then.
  };

  const absl::Duration interval_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_REPEATED_LINES_H_
