// What was said to each stage: term, epoch, seq, and what must be said again
// after a broken session.
//
// Messages of an epoch are numbered from 1 and kept until the stage has
// acknowledged them: from then on their answers are the stage's to repeat. A
// new epoch forgets the old one's messages. Abort has no number: it is repeated
// at each Hello until it is answered.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_STAGE_LINKS_H_
#define PENSTOCK_COORDINATOR_DISPATCH_STAGE_LINKS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/registry/registry.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// Thread-compatible: confined to the core's loop. Sends to a stage without an
// open session wait for its next Hello.
class StageLinks {
 public:
  // `registry` is borrowed; it knows which session is open.
  StageLinks(int64_t term, const registry::Registry& registry)
      : term_(term), registry_(registry) {}

  // The stage is LOST: ends the session that it had, and forgets it.
  void End(const registry::Loss& lost, Actions& actions);

  // The stage is LOST or (re)registered: nothing that was said to it counts,
  // and nothing of it is kept.
  void Forget(absl::string_view stage) { links_.erase(std::string(stage)); }

  // From here on messages to `stage` are of `epoch`, numbered from 1.
  void Begin(absl::string_view stage, int64_t epoch);

  // Numbers and sends. Stamps term and epoch. ResourceExhausted, and nothing is
  // sent: it is larger than a message may be (common/rpc/message_limit.h).
  absl::Status Send(absl::string_view stage, v1::CoordinatorMessage message,
                    Actions& actions);

  // Outside the sequence: Welcome, HeartbeatAck.
  void SendUnnumbered(absl::string_view stage, v1::CoordinatorMessage message,
                      Actions& actions);

  // Drops what was not acknowledged and sends Abort with the new epoch. A cause
  // with code 0 is none: the stage's job is over, and nothing went wrong.
  void Abort(absl::string_view stage, int64_t epoch, const v1::Cause& cause,
             Actions& actions);
  // Whether an Abort waits for its answer.
  bool Aborting(absl::string_view stage) const;
  // Aborted{epoch}: true when it answers the pending Abort.
  bool Aborted(absl::string_view stage, int64_t epoch);

  // Everything up to `seq` has been handled.
  void Acknowledge(absl::string_view stage, int64_t seq);

  // After Welcome on a new session: repeats what the stage may have missed.
  void Resume(absl::string_view stage, const v1::Hello& hello,
              Actions& actions);

  int64_t epoch(absl::string_view stage) const;

 private:
  struct Link {
    int64_t epoch = 0;
    int64_t next_seq = 1;
    std::deque<v1::CoordinatorMessage> kept;  // In the order of seq.
    std::optional<v1::CoordinatorMessage> abort;
  };

  void Transmit(absl::string_view stage, const v1::CoordinatorMessage& message,
                Actions& actions) const;

  const int64_t term_;
  const registry::Registry& registry_;
  std::map<std::string, Link> links_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_STAGE_LINKS_H_
