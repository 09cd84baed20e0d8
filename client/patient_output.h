// Output that may not be taken for a while, as by a pipe into a paused `less`
// or by a terminal that hangs: it waits on a thread of its own.
#ifndef PENSTOCK_CLIENT_PATIENT_OUTPUT_H_
#define PENSTOCK_CLIENT_PATIENT_OUTPUT_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "common/sync/serial_queue.h"

namespace penstock::client {

// Thread-compatible.
class PatientOutput {
 public:
  // How many bytes may wait.
  static constexpr size_t kMostWaiting = 1 << 16;

  // Borrows the descriptor.
  explicit PatientOutput(int fd) : fd_(fd) {}
  // Waits until what was written is taken, or cannot be.
  ~PatientOutput() = default;
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // Does not block. All of `text`, in the order of the calls; nothing of it
  // where more than kMostWaiting bytes would wait.
  void Write(absl::string_view text);

 private:
  void WriteOut(const std::string& text);

  const int fd_;
  std::atomic<size_t> waiting_ = 0;    // Bytes.
  common::sync::SerialQueue written_;  // Last: its thread uses the others.
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_PATIENT_OUTPUT_H_
