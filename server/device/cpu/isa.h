// Instruction-set levels of the cpu device.
//
// A level is what the kernels were compiled for; results have other bits on
// another level, so that it is part of the numerics id. A machine that has a
// level can run every lower one.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_ISA_H_
#define PENSTOCK_SERVER_DEVICE_CPU_ISA_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::server::device::cpu {

enum class Isa { kSse4 = 0, kAvx2 = 1, kAvx512 = 2 };

absl::string_view Name(Isa isa);  // "sse4", "avx2", "avx512"

// InvalidArgument, naming the levels, for any other name.
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

// What this machine can run, lowest first; empty on a CPU without SSE4.
std::vector<Isa> SupportedIsas();

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_ISA_H_
