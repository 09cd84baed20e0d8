// How a key's value gets from the YAML tree into the draft: the readers that
// the key table is made of, simple ones by type and the special ones by name.
#ifndef PENSTOCK_COORDINATOR_SPEC_READERS_H_
#define PENSTOCK_COORDINATOR_SPEC_READERS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coordinator/spec/draft_sections.h"
#include "coordinator/spec/schema.h"
#include "coordinator/spec/value_types.h"
#include "coordinator/spec/violation.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

// Where a reader stands, and what it fills.
struct Place {
  absl::string_view key_path;
  Draft& draft;
  std::vector<Violation>& violations;

  void Refuse(std::string message) const {
    RefuseAt(std::string(key_path), std::move(message));
  }
  // Of an item or a key below.
  void RefuseAt(std::string path, std::string message) const {
    Record({std::move(path), std::move(message)}, violations);
  }
};

using Reader = std::function<void(const YamlNode&, const Place&)>;

// A value of `type` goes to the draft's `field` (draft_sections.h), a T or a
// std::optional<T>.
template <typename T, typename Section, typename Field>
Reader To(ValueType<T> type, Field Section::*field) {
  return [type = std::move(type), field](const YamlNode& node,
                                         const Place& place) {
    std::optional<T> value = type.read(node);
    if (value.has_value()) {
      SectionIn<Section>(place.draft).*field = *std::move(value);
    } else {
      place.Refuse(WrongValue(type, node));
    }
  };
}

// The same, or `word`, which leaves the field empty.
template <typename T, typename Section, typename Field>
Reader ToOr(absl::string_view word, ValueType<T> type, Field Section::*field) {
  absl::StrAppend(&type.expected, ", or ", word);
  Reader inner = To(std::move(type), field);
  return [word, field, inner = std::move(inner)](const YamlNode& node,
                                                 const Place& place) {
    if (IsWord(node, word)) {
      SectionIn<Section>(place.draft).*field = std::nullopt;
    } else {
      inner(node, place);
    }
  };
}

// `naive` .. `auto`, or file:PATH.
void ReadSchedule(const YamlNode& node, const Place& place);
// auto, or a list of whole numbers.
void ReadPartition(const YamlNode& node, const Place& place);
// A list of two numbers in [0, 1).
void ReadBetas(const YamlNode& node, const Place& place);
// none, a share with %, or a path.
void ReadValidation(const YamlNode& node, const Place& place);
// A list of {path, weight}.
void ReadSources(const YamlNode& node, const Place& place);
// Only the word none: of a section that may be switched off.
void ReadNone(const YamlNode& node, const Place& place);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_READERS_H_
