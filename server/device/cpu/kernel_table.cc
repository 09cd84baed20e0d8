#include "server/device/cpu/kernel_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::server::device::cpu {
namespace {

constexpr int kVersion = 2;

// FNV-1a, 32 bits.
uint32_t Digest(absl::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash;
}

std::string TableText() {
  std::string text;
  for (const KernelBlocks& b : {kSse4Blocks, kAvx2Blocks, kAvx512Blocks}) {
    absl::StrAppend(&text, b.mr, " ", b.nv, " ", b.lanes, " ", b.kc, " ", b.mc,
                    "\n");
  }
  return text;
}

}  // namespace

std::string NumericsId(Isa isa) {
  return absl::StrFormat("cpu-%s-%d-%08x", Name(isa), kVersion,
                         Digest(TableText()));
}

}  // namespace penstock::server::device::cpu
