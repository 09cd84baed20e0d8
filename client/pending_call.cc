#include "client/pending_call.h"

#include <utility>

namespace penstock::client {

PendingCall::PendingCall(std::function<void()> call, std::function<void()> wake)
    : thread_([this, call = std::move(call), wake = std::move(wake)] {
        call();
        done_ = true;
        wake();
      }) {}

PendingCall::~PendingCall() { thread_.join(); }

}  // namespace penstock::client
