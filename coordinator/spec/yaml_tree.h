// A YAML document as a small tree with positions: the one place that calls
// yaml-cpp, whose exceptions never leave it.
//
// Bounded, since the bytes come from anyone: size, depth and the numbers of
// values and of violations (kMaxViolations) are limited; aliases, anchors,
// tags, duplicate keys, keys that are not plain words, second documents and
// bytes that are not UTF-8 are refused.
#ifndef PENSTOCK_COORDINATOR_SPEC_YAML_TREE_H_
#define PENSTOCK_COORDINATOR_SPEC_YAML_TREE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string scalar;              // of kScalar
  bool quoted = false;             // a quoted or block scalar: never a number
  std::vector<YamlNode> items;     // of kList
  std::vector<YamlEntry> entries;  // of kMap, in the order given, no duplicates

  bool IsMap() const { return kind == Kind::kMap; }
  // The value of `key`, or null where this is no map or has no such key.
  const YamlNode* Find(absl::string_view key) const;
};

struct YamlEntry {
  std::string key;
  YamlNode value;
};

// `key_path` with `key` below it: "model" + "layers" = "model.layers". A key
// that is no plain word is quoted and cut, so that a path stays readable.
std::string ChildPath(absl::string_view key_path, absl::string_view key);
std::string ItemPath(absl::string_view key_path, size_t index);

// Parses one document. Adds each key's position to `positions` and whatever is
// wrong to `violations`; nullopt only where the text is no YAML at all (then
// there is exactly one more violation, and the root's position is set to it).
// An empty document is a kNull node.
std::optional<YamlNode> ParseYaml(absl::string_view bytes,
                                  PositionMap& positions,
                                  std::vector<Violation>& violations);

// What a message calls the node: `the text "abc"`, `a list`, `nothing`...
std::string Describe(const YamlNode& node);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_YAML_TREE_H_
