// A call that blocks, made on a thread of its own: whoever needs its answer
// hears signals and children meanwhile.
#ifndef PENSTOCK_CLIENT_PENDING_CALL_H_
#define PENSTOCK_CLIENT_PENDING_CALL_H_

#include <atomic>
#include <functional>
#include <thread>

namespace penstock::client {

// Thread-safe.
class PendingCall {
 public:
  // Runs `call`, then `wake`, on the call's thread.
  PendingCall(std::function<void()> call, std::function<void()> wake);
  // Waits for the call: one that may last is ended before.
  ~PendingCall();
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  // Whether `call` has returned: what it wrote can be read then. True before
  // `wake` is called.
  bool done() const { return done_; }

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_PENDING_CALL_H_
