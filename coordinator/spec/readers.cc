#include "coordinator/spec/readers.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/text/quote.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {
namespace {

// One item of data.sources.
void ReadSource(const YamlNode& node, const Place& place) {
  if (!node.IsMap()) {
    place.Refuse(absl::StrCat("expected {path: ..., weight: ...}, got ",
                              Describe(node)));
    return;
  }
  DataSource source;
  bool has_path = false;
  for (const YamlEntry& entry : node.entries) {
    const std::string path = ChildPath(place.key_path, entry.key);
    if (entry.key == "path") {
      const ValueType<std::string> type = Text("a path");
      const auto value = type.read(entry.value);
      if (!value) place.RefuseAt(path, WrongValue(type, entry.value));
      source.path = value.value_or("");
      has_path = true;
    } else if (entry.key == "weight") {
      const ValueType<double> type = AnyPositive();
      const auto value = type.read(entry.value);
      if (!value) place.RefuseAt(path, WrongValue(type, entry.value));
      source.weight = value.value_or(1.0);
    } else {
      place.RefuseAt(path, "unknown key; the keys here are path weight");
    }
  }
  if (!has_path) place.Refuse("path is required");
  place.draft.spec.data.sources.push_back(std::move(source));
}

}  // namespace

void ReadSchedule(const YamlNode& node, const Place& place) {
  PipelineSpec& pipeline = place.draft.spec.pipeline;
  absl::string_view file = node.scalar;
  if (node.kind == YamlNode::Kind::kScalar &&
      absl::ConsumePrefix(&file, "file:") && !file.empty() &&
      Text("").read(node).has_value()) {
    pipeline.schedule = ScheduleKind::kFile;
    pipeline.schedule_file = std::string(file);
    return;
  }
  ValueType<ScheduleKind> type = WordOf(kScheduleKindNames);
  absl::StrAppend(&type.expected, ", or file:PATH");
  // `file:` without a path is a mapping to YAML.
  const bool no_path = node.scalar == "file:" || node.Find("file") != nullptr;
  if (no_path) {
    type.hint = [](const YamlNode&) {
      return "write file:PATH, such as file:orders.csv";
    };
  }
  To(std::move(type), &PipelineSpec::schedule)(node, place);
}

void ReadPartition(const YamlNode& node, const Place& place) {
  std::optional<std::vector<int64_t>>& partition =
      place.draft.spec.pipeline.partition;
  if (IsWord(node, "auto")) {
    partition = std::nullopt;
    return;
  }
  if (node.kind != YamlNode::Kind::kList) {
    place.Refuse(
        absl::StrCat("expected auto or a list of blocks per virtual "
                     "stage such as [2, 2], got ",
                     Describe(node)));
    return;
  }
  const ValueType<int64_t> blocks = Whole(0, kMaxLayers);
  partition.emplace();
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::optional<int64_t> value = blocks.read(node.items[i]);
    if (!value.has_value()) {
      place.RefuseAt(ItemPath(place.key_path, i),
                     WrongValue(blocks, node.items[i]));
    }
    partition->push_back(value.value_or(0));
  }
}

void ReadBetas(const YamlNode& node, const Place& place) {
  if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) {
    place.Refuse(
        absl::StrCat("expected a list of two numbers such as [0.9, 0.95], got ",
                     node.kind == YamlNode::Kind::kList
                         ? absl::StrCat("a list of ", node.items.size())
                         : Describe(node)));
    return;
  }
  const ValueType<double> beta = BelowOne();
  double* const targets[] = {&place.draft.spec.optimizer.beta1,
                             &place.draft.spec.optimizer.beta2};
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> value = beta.read(node.items[i]);
    if (value.has_value()) {
      *targets[i] = *value;
    } else {
      place.RefuseAt(ItemPath(place.key_path, i),
                     WrongValue(beta, node.items[i]));
    }
  }
}

void ReadValidation(const YamlNode& node, const Place& place) {
  std::optional<ValidationSpec>& validation = place.draft.spec.data.validation;
  validation = std::nullopt;
  if (IsWord(node, "none")) return;
  const ValueType<std::string> path =
      Text("a share such as 5%, a path, or none");
  const std::optional<std::string> text = path.read(node);
  if (!text.has_value()) {
    place.Refuse(WrongValue(path, node));
    return;
  }
  if (!node.quoted && ParseNumber(*text).has_value()) {
    place.Refuse(absl::StrCat("expected ", path.expected, ", got ",
                              common::text::Quoted(*text),
                              "; write a share with %"));
    return;
  }
  if (!node.quoted && absl::EndsWith(*text, "%")) {
    const std::optional<int64_t> share = ParseShare(*text);
    if (share.has_value()) {
      validation = ValidationSpec{.share_millionths = *share};
    } else {
      place.Refuse(
          absl::StrCat("expected a share above 0% and below 100% with "
                       "at most four decimals, got ",
                       common::text::Quoted(*text)));
    }
    return;
  }
  validation = ValidationSpec{.path = *text};
}

void ReadSources(const YamlNode& node, const Place& place) {
  if (node.kind != YamlNode::Kind::kList || node.items.empty()) {
    place.Refuse(absl::StrCat(
        "expected a list such as [{path: a.txt, weight: 1}], got ",
        node.kind == YamlNode::Kind::kList ? "an empty list" : Describe(node)));
    return;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string path = ItemPath(place.key_path, i);
    ReadSource(node.items[i], Place{path, place.draft, place.violations});
  }
}

void ReadNone(const YamlNode& node, const Place& place) {
  if (!IsWord(node, "none")) {
    place.Refuse(absl::StrCat("expected a mapping of keys, or none, got ",
                              Describe(node)));
  }
}

}  // namespace penstock::coordinator::spec
