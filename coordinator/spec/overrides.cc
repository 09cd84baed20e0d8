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
  if (key.size() > PositionMap::kMaxPathBytes) return {};
  std::vector<absl::string_view> words = absl::StrSplit(key, '.');
  if (static_cast<int>(words.size()) > kMaxDepth) return {};
  for (const absl::string_view word : words) {
    if (!IsWord(word)) return {};
  }
  return words;
}

// Itself and everything below it.
int CountValues(const YamlNode& node) {
  int count = 1;
  for (const YamlNode& item : node.items) count += CountValues(item);
  for (const YamlEntry& entry : node.entries) count += CountValues(entry.value);
  return count;
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
    Record(
        {std::string(key), absl::StrCat("value ", common::text::Quoted(value),
                                        ": ", violation.message)},
        violations);
  }
  return inner.empty() ? std::move(node) : std::nullopt;
}

// The list being applied to one tree; lives for one call.
class Applier {
 public:
  Applier(YamlNode& root, PositionMap& positions,
          std::vector<Violation>& violations)
      : root_(root),
        positions_(positions),
        violations_(violations),
        values_(CountValues(root)) {}

  // False: the next one would find no room.
  bool Apply(const Override& given) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(given.setting, absl::MaxSplits('=', 1));
    const absl::string_view key = parts.first;
    const std::vector<absl::string_view> words = SplitKey(key);
    if (words.empty() || key.size() == given.setting.size()) {
      const std::string shown = common::text::Quoted(given.setting);
      positions_.AddOverride(shown, {.key = shown, .flag = given.flag});
      Record({shown,
              "expected KEY=VALUE with a dotted key, such as "
              "pipeline.stages=4"},
             violations_);
      return true;
    }
    // A document that is a list or a text stays what it is: the schema says so.
    if (!root_.IsMap() && root_.kind != YamlNode::Kind::kNull) return true;
    const OverrideOrigin origin{.key = std::string(key), .flag = given.flag};
    positions_.Remove(key);
    positions_.AddOverride(key, origin);
    std::optional<YamlNode> value = ReadValue(key, parts.second, violations_);
    if (!value.has_value()) return true;
    // What is replaced stays counted: the work is bounded too.
    values_ += static_cast<int>(words.size()) - 1 + CountValues(*value);
    if (values_ > kMaxValues) {
      Record({origin.key, absl::StrCat("with this value the job file and what "
                                       "is set over it hold more than ",
                                       kMaxValues, " values")},
             violations_);
      return false;
    }
    YamlNode& node = MakePath(words, origin);
    node = *std::move(value);
    MarkAll(node, key, origin, positions_);
    return true;
  }

 private:
  // The node that `words` lead to, made where it is not there.
  YamlNode& MakePath(const std::vector<absl::string_view>& words,
                     const OverrideOrigin& origin) {
    YamlNode* node = &root_;
    std::string path;
    for (const absl::string_view word : words) {
      if (!node->IsMap()) {
        *node = YamlNode{.kind = YamlNode::Kind::kMap};
        if (!path.empty()) {
          positions_.Remove(path);
          positions_.AddOverride(path, origin);
        }
      }
      path = ChildPath(path, word);
      node = &ChildOf(*node, word);
    }
    return *node;
  }

  YamlNode& root_;
  PositionMap& positions_;
  std::vector<Violation>& violations_;
  int values_;  // Of the file and of all that was set.
};

}  // namespace

void ApplyOverrides(absl::Span<const Override> list, YamlNode& root,
                    PositionMap& positions,
                    std::vector<Violation>& violations) {
  size_t bytes = 0;
  for (const Override& each : list) bytes += each.setting.size();
  if (list.size() > kMaxOverrides || bytes > kMaxOverrideBytes) {
    positions.AddOverride("--set", {.key = "--set", .flag = "--set"});
    violations.push_back(
        {"--set",
         absl::StrCat("is given ", list.size(), " times, ", bytes,
                      " bytes in all; at most ", kMaxOverrides, " and ",
                      kMaxOverrideBytes, " (1 MiB) are allowed")});
    return;
  }
  Applier applier(root, positions, violations);
  for (const Override& each : list) {
    if (!applier.Apply(each)) return;
  }
}

}  // namespace penstock::coordinator::spec
