// Any bytes as a job file: no crash, no exception, every violation rendered as
// valid text; and a job that is accepted reads back equal from job.yaml. The
// first line, where it starts with "#set ", is taken as a --set argument.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "common/text/utf8.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/resolved_yaml.h"

using penstock::common::text::FindNotText;
using penstock::coordinator::spec::ParsedJob;
using penstock::coordinator::spec::ParseJob;
using penstock::coordinator::spec::ParseOptions;
using penstock::coordinator::spec::RenderAll;
using penstock::coordinator::spec::ToResolvedYaml;

namespace {

absl::StatusOr<std::string> ReadConfig(absl::string_view) {
  return std::string(
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2,
          "n_positions": 2048, "vocab_size": 300})");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ParseOptions options{.read_config_json = ReadConfig};
  if (absl::StartsWith(bytes, "#set ")) {
    options.overrides.emplace_back(bytes.substr(5, bytes.find('\n') - 5));
  }
  ParsedJob job = ParseJob(bytes, "job.yaml", options);
  const std::string text = RenderAll(job.violations, job.positions);
  CHECK(FindNotText(text) == absl::string_view::npos);
  if (!job.ok()) {
    CHECK(!text.empty());
    return 0;
  }
  const ParsedJob again =
      ParseJob(ToResolvedYaml(job.spec), "job.yaml",
               ParseOptions{.read_config_json = ReadConfig});
  CHECK(again.ok());
  job.spec.data.format_by_name = false;  // job.yaml says which format it is.
  CHECK(again.spec == job.spec);
  return 0;
}
