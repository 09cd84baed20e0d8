#include "coordinator/spec/overrides.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/text/quote.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::spec {
namespace {

bool IsWord(absl::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-') return false;
  }
  return true;
}

// The words of a dotted key; empty: it is none.
std::vector<absl::string_view> SplitKey(absl::string_view key) {
  std::vector<absl::string_view> words = absl::StrSplit(key, '.');
  if (static_cast<int>(words.size()) > kMaxDepth) return {};
  for (const absl::string_view word : words) {
    if (!IsWord(word)) return {};
  }
  return words;
}

// Marks everything in `node`, which stands at `path`, as set by `origin`.
void MarkAll(const YamlNode& node, absl::string_view path,
             const OverrideOrigin& origin, PositionMap& positions) {
  positions.AddOverride(path, origin);
  for (size_t i = 0; i < node.items.size(); ++i) {
    MarkAll(node.items[i], ItemPath(path, i), origin, positions);
  }
  for (const YamlEntry& entry : node.entries) {
    MarkAll(entry.value, ChildPath(path, entry.key), origin, positions);
  }
}

// The value of `word` in `map`, made empty where it is not there.
YamlNode& ChildOf(YamlNode& map, absl::string_view word) {
  for (YamlEntry& entry : map.entries) {
    if (entry.key == word) return entry.value;
  }
  map.entries.push_back({std::string(word), YamlNode{}});
  return map.entries.back().value;
}

// The text after `=`, read as YAML; nullopt: it is none, which is reported.
std::optional<YamlNode> ReadValue(absl::string_view key,
                                  absl::string_view value,
                                  std::vector<Violation>& violations) {
  PositionMap inner_positions;
  std::vector<Violation> inner;
  std::optional<YamlNode> node = ParseYaml(value, inner_positions, inner);
  for (const Violation& violation : inner) {
    violations.push_back(
        {std::string(key), absl::StrCat("value ", common::text::Quoted(value),
                                        ": ", violation.message)});
  }
  return inner.empty() ? std::move(node) : std::nullopt;
}

}  // namespace

void ApplyOverride(const Override& given, YamlNode& root,
                   PositionMap& positions, std::vector<Violation>& violations) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(given.setting, absl::MaxSplits('=', 1));
  const absl::string_view key = parts.first;
  const std::vector<absl::string_view> words = SplitKey(key);
  if (words.empty() || key.size() == given.setting.size()) {
    const std::string shown = common::text::Quoted(given.setting);
    positions.AddOverride(shown, {.key = shown, .flag = given.flag});
    violations.push_back({shown,
                          "expected KEY=VALUE with a dotted key, such as "
                          "pipeline.stages=4"});
    return;
  }
  // A document that is a list or a text stays what it is: the schema says so.
  if (root.kind != YamlNode::Kind::kMap && root.kind != YamlNode::Kind::kNull) {
    return;
  }
  const OverrideOrigin origin{.key = std::string(key), .flag = given.flag};
  positions.Remove(key);
  positions.AddOverride(key, origin);
  std::optional<YamlNode> value = ReadValue(key, parts.second, violations);
  if (!value.has_value()) return;
  YamlNode* node = &root;
  std::string path;
  for (const absl::string_view word : words) {
    if (!node->IsMap()) {
      *node = YamlNode{.kind = YamlNode::Kind::kMap};
      if (!path.empty()) {
        positions.Remove(path);
        positions.AddOverride(path, origin);
      }
    }
    path = ChildPath(path, word);
    node = &ChildOf(*node, word);
  }
  *node = *std::move(value);
  MarkAll(*node, key, origin, positions);
}

}  // namespace penstock::coordinator::spec
