#include "client/patient_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace penstock::client {

void PatientOutput::Write(absl::string_view text) {
  if (waiting_ + text.size() > kMostWaiting) return;
  waiting_ += text.size();
  written_.Post([this, text = std::string(text)] {
    WriteOut(text);
    waiting_ -= text.size();
  });
}

void PatientOutput::WriteOut(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t taken = write(fd_, text.data() + done, text.size() - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0 && errno == EAGAIN) {  // Another program made it so.
      pollfd out{.fd = fd_, .events = POLLOUT, .revents = 0};
      poll(&out, 1, -1);
      continue;
    }
    if (taken <= 0) return;  // Whoever reads it has gone.
    done += taken;
  }
}

}  // namespace penstock::client
