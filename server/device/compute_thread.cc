#include "server/device/compute_thread.h"

#include <sys/resource.h>
#include <unistd.h>

namespace penstock::server::device {

void BecomeComputeThread() {
  // Linux: nice is a thread's. The main thread's number is the process's, and
  // the thread's own may have been inherited from one that computes.
  const int process = getpriority(PRIO_PROCESS, getpid());
  setpriority(PRIO_PROCESS, gettid(), process + kComputeNice);
}

}  // namespace penstock::server::device
