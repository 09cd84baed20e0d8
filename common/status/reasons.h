// The words of WithReason() that more than one file knows. Those that a job can
// end with are v1::Job::StateReason's names without their prefix.
#ifndef PENSTOCK_COMMON_STATUS_REASONS_H_
#define PENSTOCK_COMMON_STATUS_REASONS_H_

namespace penstock::common::status {

// The job file, or what it names, breaks a rule.
inline constexpr char kReasonInvalidSpec[] = "INVALID_SPEC";
// A file or folder of the job cannot be read or written.
inline constexpr char kReasonInputNotVisible[] = "INPUT_NOT_VISIBLE";
// No stages that the job could run on came in time.
inline constexpr char kReasonNoStages[] = "NO_STAGES";
// A stage daemon ended, was told to, or was not heard of in its lease.
inline constexpr char kReasonStageLost[] = "STAGE_LOST";
// Memory or the plan of it is exhausted.
inline constexpr char kReasonOutOfMemory[] = "OUT_OF_MEMORY";
// A neighbour's message did not come in time.
inline constexpr char kReasonTransportTimeout[] = "TRANSPORT_TIMEOUT";
// A value that training cannot go on with.
inline constexpr char kReasonNonfinite[] = "NONFINITE";
// No space, quota, or a limit of file sizes.
inline constexpr char kReasonDiskFull[] = "DISK_FULL";
// Stages that would not compute the same bits.
inline constexpr char kReasonNumericsMismatch[] = "NUMERICS_MISMATCH";
// A user cancelled it.
inline constexpr char kReasonUser[] = "USER";
// Penstock's own fault, or a limit of its messages.
inline constexpr char kReasonInternal[] = "INTERNAL";
// No protocol version that both sides speak.
inline constexpr char kReasonProtocolVersionUnsupported[] =
    "PROTOCOL_VERSION_UNSUPPORTED";
// The connection between two stages broke.
inline constexpr char kReasonEdgeBroken[] = "EDGE_BROKEN";
// A command did not end in time.
inline constexpr char kReasonCommandTimeout[] = "COMMAND_TIMEOUT";

}  // namespace penstock::common::status

#endif  // PENSTOCK_COMMON_STATUS_REASONS_H_
