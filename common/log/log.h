// LOG and CHECK, with the names that later abseil releases give them.
//
//   LOG(INFO) << "stage " << rank << " registered";
//   CHECK(slot < slots) << "slot " << slot;
//
// Lines go to stderr, each written whole in one call, with UTC time, severity
// and place; with Format::kJson each is a JSON object instead. A message may
// quote whatever a peer sent: it stays one line of UTF-8 (common/text/quote.h;
// in JSON, as JSON escapes) of kMaxMessageBytes, and says what is left out. A
// failed CHECK prints and aborts: it is for what cannot happen, never for
// input.
// Thread-safe.
#ifndef PENSTOCK_COMMON_LOG_LOG_H_
#define PENSTOCK_COMMON_LOG_LOG_H_

#include <cstddef>
#include <sstream>
#include <string>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/string_view.h"

namespace penstock::common::log {

enum class Severity { kInfo = 0, kWarning = 1, kError = 2, kFatal = 3 };
enum class Format { kText, kJson };

// Before escaping.
inline constexpr size_t kMaxMessageBytes = size_t{16} << 10;

// What one process prints. Set once by main() before threads start.
struct Options {
  Format format = Format::kText;
  Severity minimum = Severity::kInfo;
  std::string process;  // Printed in each line, as "stage-2"; may be empty.
};
void Configure(const Options& options);

// One line under construction; written by the destructor.
class Line {
 public:
  Line(Severity severity, const char* file, int line);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  std::ostream& stream() { return stream_; }

 private:
  Severity severity_;
  const char* file_;
  int line_;
  std::ostringstream stream_;
};

// Makes CHECK's failing branch void, as its other one; & binds weaker than <<.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace penstock::common::log

#define PENSTOCK_LOG_INFO ::penstock::common::log::Severity::kInfo
#define PENSTOCK_LOG_WARNING ::penstock::common::log::Severity::kWarning
#define PENSTOCK_LOG_ERROR ::penstock::common::log::Severity::kError
#define PENSTOCK_LOG_FATAL ::penstock::common::log::Severity::kFatal

#define LOG(severity)                                                        \
  ::penstock::common::log::Line(PENSTOCK_LOG_##severity, __FILE__, __LINE__) \
      .stream()

#define CHECK(condition)                 \
  ABSL_PREDICT_TRUE(condition)           \
  ? (void)0                              \
  : ::penstock::common::log::Voidify() & \
          LOG(FATAL) << "CHECK failed: " #condition " "

#define CHECK_EQ(a, b) CHECK((a) == (b)) << (a) << " vs " << (b) << " "
#define CHECK_NE(a, b) CHECK((a) != (b)) << (a) << " vs " << (b) << " "
#define CHECK_LT(a, b) CHECK((a) < (b)) << (a) << " vs " << (b) << " "
#define CHECK_LE(a, b) CHECK((a) <= (b)) << (a) << " vs " << (b) << " "
#define CHECK_GT(a, b) CHECK((a) > (b)) << (a) << " vs " << (b) << " "
#define CHECK_GE(a, b) CHECK((a) >= (b)) << (a) << " vs " << (b) << " "
#define CHECK_OK(expr)                                            \
  do {                                                            \
    const auto& penstock_check_status_ = (expr);                  \
    CHECK(penstock_check_status_.ok()) << penstock_check_status_; \
  } while (false)

#endif  // PENSTOCK_COMMON_LOG_LOG_H_
