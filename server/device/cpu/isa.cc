#include "server/device/cpu/isa.h"

#include "absl/strings/str_cat.h"
#include "hwy/targets.h"

namespace penstock::server::device::cpu {
namespace {

constexpr Isa kAll[] = {Isa::kSse4, Isa::kAvx2, Isa::kAvx512};

int64_t HighwayTarget(Isa isa) {
  switch (isa) {
    case Isa::kSse4:
      return HWY_SSE4;
    case Isa::kAvx2:
      return HWY_AVX2;
    case Isa::kAvx512:
      return HWY_AVX3;
  }
  return 0;
}

}  // namespace

absl::string_view Name(Isa isa) {
  switch (isa) {
    case Isa::kSse4:
      return "sse4";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  for (const Isa isa : kAll) {
    if (Name(isa) == name) return isa;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is no instruction-set level: sse4, avx2 or avx512"));
}

std::vector<Isa> SupportedIsas() {
  const int64_t targets = hwy::SupportedTargets();
  std::vector<Isa> isas;
  for (const Isa isa : kAll) {
    if ((targets & HighwayTarget(isa)) != 0) isas.push_back(isa);
  }
  return isas;
}

}  // namespace penstock::server::device::cpu
