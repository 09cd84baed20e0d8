#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/job_yaml.h"
#include "client/report/sections.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

constexpr size_t kMostJobYaml = 64 * 1024;  // Bytes.
constexpr int kMostFact = 1000;             // Characters.

// Values of job.yaml, "" for those that are not there.
class Keys {
 public:
  explicit Keys(const std::string& text) : keys_(ResolvedKeys(text)) {}
  std::string Get(const char* key) const {
    const auto it = keys_.find(key);
    return it == keys_.end() ? "" : it->second;
  }
  // "8 layers" for ("model.layers", " layers").
  std::string With(absl::string_view before, const char* key,
                   absl::string_view after) const {
    const std::string value = Get(key);
    return value.empty() ? "" : absl::StrCat(before, value, after);
  }

 private:
  const std::map<std::string, std::string> keys_;
};

std::string Joined(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    absl::StrAppend(&out, out.empty() ? "" : ", ", part);
  }
  return out;
}

enum class Look { kText, kCode };

void Fact(absl::string_view name, const std::string& value, Look look,
          std::string& out) {
  if (value.empty()) return;
  absl::StrAppendFormat(&out, "<dt>%s</dt><dd%s>%s</dd>\n", name,
                        look == Look::kCode ? " class=\"code\"" : "",
                        Escape(Truncated(value, kMostFact)));
}

void JobFacts(const Keys& keys, const PipelineSummary& pipeline,
              std::string& out) {
  Fact("Model",
       Joined({keys.With("from ", "model.from", ""), keys.Get("model.family"),
               keys.With("", "model.layers", " layers"),
               keys.With("width ", "model.width", ""),
               keys.With("", "model.heads", " heads"),
               keys.With("context ", "model.context", ""),
               keys.With("vocabulary ", "model.vocab", "")}),
       Look::kText, out);
  Fact("Data",
       Joined({keys.Get("data.train"), keys.Get("data.sources"),
               keys.With("format ", "data.format", ""),
               keys.With("", "data.sequence_length", " tokens a sequence"),
               keys.Get("data.order"),
               keys.With("validation ", "data.validation", "")}),
       Look::kText, out);
  const std::string micro_batches =
      pipeline.micro_batches > 0
          ? absl::StrCat(Count(pipeline.micro_batches), " micro-batches a step")
          : "";
  Fact("Batch",
       Joined({keys.With("", "batch.global", " sequences a step"),
               keys.With("", "batch.micro_batch", " a micro-batch"),
               micro_batches}),
       Look::kText, out);
  Fact("Pipeline",
       Joined({ScheduleText(pipeline),
               pipeline.ranks > 0 ? absl::StrCat(pipeline.ranks, " ranks") : "",
               pipeline.chunks > 1
                   ? absl::StrCat(pipeline.chunks, " chunks a rank")
                   : "",
               keys.With("partition ", "pipeline.partition", ""),
               keys.With("recompute ", "pipeline.recompute", "")}),
       Look::kText, out);
  Fact("Optimizer",
       Joined({keys.Get("optimizer.kind"),
               keys.With("learning rate ", "optimizer.lr", ""),
               keys.With("", "lr_schedule.kind", " schedule"),
               keys.With("weight decay ", "optimizer.weight_decay", ""),
               keys.With("clip ", "optimizer.clip_norm", "")}),
       Look::kText, out);
  Fact("Precision",
       Joined({keys.Get("precision"), keys.With("seed ", "seed", "")}),
       Look::kText, out);
}

std::string Devices(const std::vector<std::string>& devices) {
  std::map<std::string, int> counts;
  for (const std::string& device : devices) ++counts[device];
  std::string out;
  for (const auto& [device, count] : counts) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", count, " × ", device);
  }
  return out;
}

}  // namespace

std::string FactsSection(const RunFiles& files) {
  const Keys keys(files.job_yaml);
  std::string list;
  JobFacts(keys, files.pipeline(), list);
  if (files.summary.has_value()) {
    const RunSummary& summary = *files.summary;
    Fact("Devices", Devices(summary.devices), Look::kText, list);
    Fact("Penstock",
         Joined({summary.version,
                 summary.build.empty() ? "" : "build " + summary.build,
                 summary.protocol.has_value()
                     ? absl::StrCat("protocol ", *summary.protocol)
                     : ""}),
         Look::kText, list);
    Fact("Numerics id", summary.numerics, Look::kCode, list);
    Fact("Weights, SHA-256", summary.weights_sha256, Look::kCode, list);
    Fact("Fingerprint of job and data", summary.fingerprint, Look::kCode, list);
  }
  if (list.empty()) return "";
  std::string out = absl::StrCat("<section class=\"card\">\n<h2>The job</h2>\n",
                                 "<dl>\n", list, "</dl>\n");
  if (!files.job_yaml.empty()) {
    absl::StrAppendFormat(
        &out,
        "<details><summary>job.yaml with every value</summary><pre>%s%s</pre>"
        "</details>\n",
        Escape(files.job_yaml.substr(0, kMostJobYaml)),
        files.job_yaml.size() > kMostJobYaml ? "…" : "");
  }
  absl::StrAppend(&out, "</section>\n");
  return out;
}

}  // namespace penstock::client::report
