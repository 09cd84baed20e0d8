// Any bytes as a config.json: no crash, no exception, errors that are text,
// and an accepted model that keeps what everything later relies on.
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "common/text/utf8.h"
#include "coordinator/spec/hf_config.h"

using penstock::common::text::FindNotText;
using penstock::coordinator::spec::HfConfig;
using penstock::coordinator::spec::ReadHfConfig;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const HfConfig config = ReadHfConfig(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  for (const std::string& error : config.errors) {
    CHECK(!error.empty());
    CHECK(FindNotText(error) == absl::string_view::npos);
  }
  if (!config.errors.empty()) return 0;
  CHECK(config.model.layers > 0 && config.model.width > 0);
  CHECK(config.model.vocab > 0 && config.model.context > 0);
  CHECK(config.model.ffn_width > 0 && config.model.head_dim > 0);
  CHECK(config.model.heads % config.model.kv_heads == 0);
  CHECK(config.model.norm_eps > 0 && config.model.rope_scaling.factor >= 1);
  return 0;
}
