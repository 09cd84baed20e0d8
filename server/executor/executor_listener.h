// What an executor tells: the bodies of the stage's messages.
#ifndef PENSTOCK_SERVER_EXECUTOR_EXECUTOR_LISTENER_H_
#define PENSTOCK_SERVER_EXECUTOR_EXECUTOR_LISTENER_H_

#include "penstock/v1/coordination_service.pb.h"

namespace penstock::server::executor {

// Implementations are thread-safe. Calls must not block and may call
// Executor::Enqueue and Abort. All come from the engine thread, except
// OnFailure, which may come from any. No call comes once the executor's
// destructor has returned. Fields that only the session knows (acked_seq,
// resident bytes) are left unset.
class ExecutorListener {
 public:
  virtual ~ExecutorListener() = default;

  virtual void OnStepReport(const v1::StepReport& report) = 0;
  virtual void OnApplyAck(const v1::ApplyAck& ack) = 0;
  // Only on the rank with the head.
  virtual void OnEvalReport(const v1::EvalReport& report) = 0;
  virtual void OnEndReport(const v1::EndReport& report) = 0;
  // The epoch is over here, by itself: at most once, and not after Abort().
  virtual void OnFailure(const v1::StageFailure& failure) = 0;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_EXECUTOR_LISTENER_H_
