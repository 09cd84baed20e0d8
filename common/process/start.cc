#include "common/process/start.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "common/process/signals.h"
#include "common/sync/mutex.h"

namespace penstock::common::process {

void StartHearingSignals(const std::function<void()>& start,
                         absl::Duration limit) {
  sync::Notification started;
  std::thread thread([&start, &started] {
    start();
    started.Notify();
    kill(getpid(), SIGCHLD);  // Wakes main.
  });
  int told = 0;
  while (!started.HasBeenNotified()) {
    const auto signal =
        WaitForSignal(told == 0 ? absl::InfiniteDuration() : limit);
    if (!signal.has_value()) _exit(0);
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (told != 0) _exit(128 + *signal);
    told = *signal;
  }
  thread.join();
  if (told != 0) kill(getpid(), told);
  kill(getpid(), SIGCHLD);  // One that was taken here was not ours.
}

}  // namespace penstock::common::process
