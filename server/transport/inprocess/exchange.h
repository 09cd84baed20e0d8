// What the transports of one hub share: the channels (one an edge and epoch)
// on which posted receives and ready sends meet. Internal to this folder.
//
//   Begin()    queues an operation at its end of the channel (engine thread)
//   Ready()    its stream has reached it (inside Stream::Call)
//   delivery   both heads ready -> checks -> memcpy without the lock -> done
//
// One lock for all. Events are signalled under it (HostEvent's lock is a leaf),
// so that when Abort() returns every event of the member is done; callbacks of
// members are called without it. Membership, Connect and Close are in
// exchange.cc, messages in delivery.cc, failures and Abort in failures.cc.
#ifndef PENSTOCK_SERVER_TRANSPORT_INPROCESS_EXCHANGE_H_
#define PENSTOCK_SERVER_TRANSPORT_INPROCESS_EXCHANGE_H_

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/host_event.h"
#include "server/transport/inprocess/channel.h"
#include "server/transport/inprocess/hub.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::inprocess {

// Notes times where there is a clock, which it borrows; it may be null.
std::unique_ptr<device::HostEvent> NewEvent(const common::time::Clock* clock);

// Thread-safe.
class Exchange {
 public:
  explicit Exchange(const HubOptions& options);
  ~Exchange();

  // Ends the delivering thread; idempotent.
  void Stop();

  absl::StatusOr<std::unique_ptr<Member>> Join(const std::string& name,
                                               const TransportOptions& options);
  // Removes the member: its peers fail.
  void Leave(Member& member);

  absl::Status Connect(Member& member, absl::Time deadline);
  std::vector<Edge> Unconnected(const Member& member) const;
  Channel* Find(int64_t epoch, const Edge& edge);

  // Queues the operation; its event is pending, or failed when the member has
  // failed.
  void Begin(Member& member, Channel& channel, EdgeRole role,
             const std::shared_ptr<Operation>& operation);
  // REQUIRES: Begin() was called. `status` is the stream's.
  void Ready(Channel& channel, const std::shared_ptr<Operation>& operation,
             const absl::Status& status);

  Failure failure(const Member& member) const;
  void SetOnFailure(Member& member,
                    std::function<void(const Failure&)> callback);
  void Abort(Member& member, const absl::Status& cause);
  absl::Status Close(Member& member, absl::Time deadline);

 private:
  std::vector<Edge> UnconnectedLocked(const Member& member) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Members whose on_failure to call once the lock is free.
  using Calls = std::vector<Member*>;

  // Delivers as much as is ready, or schedules it where there are delays.
  void PumpLocked(Channel& channel, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Delivers the two heads; frees the lock while it copies.
  void DeliverLocked(Channel& channel, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DeliverableLocked(const Channel& channel) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is wrong with the two heads: a fault to order, or they differ.
  absl::Status CheckLocked(Channel& channel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the member for what happened on `channel` and calls back, unless it
  // has failed.
  void FailLocked(Member* member, const Channel& channel,
                  const absl::Status& failure, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The member has failed: completes its `ended` and its operations with its
  // status, except those that are being copied: who copies completes them.
  void EndMemberLocked(Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Edges with messages of the member's that no peer has received; edges whose
  // peer has not said goodbye.
  std::vector<std::string> UnsentLocked(const Member& member) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> OpenLocked(const Member& member) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says the member's goodbye: a peer that waits for it on an edge waits in
  // vain.
  void SayGoodbyeLocked(Member& member, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fails the peers of a member that is gone.
  void FailPeersLocked(Member& member, absl::string_view what, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellFailureLocked(Member& member, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunCalls(const Calls& calls);
  void DeliverDelayed();

  const HubOptions options_;

  mutable common::sync::Mutex mutex_;
  std::map<std::pair<int64_t, Edge>, std::unique_ptr<Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
  std::vector<Channel*> scheduled_ ABSL_GUARDED_BY(mutex_);
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread deliverer_;  // Only with delays.
};

}  // namespace penstock::server::transport::inprocess

#endif  // PENSTOCK_SERVER_TRANSPORT_INPROCESS_EXCHANGE_H_
