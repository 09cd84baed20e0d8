#include "coordinator/spec/schema.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "coordinator/spec/foreign_keys.h"
#include "coordinator/spec/key_table.h"

namespace penstock::coordinator::spec {
namespace {

const KeyRow* FindRow(absl::string_view path) {
  for (const KeyRow& row : KeyTable()) {
    if (row.path == path) return &row;
  }
  return nullptr;
}

bool IsSection(absl::string_view path) {
  const std::string prefix = absl::StrCat(path, ".");
  for (const KeyRow& row : KeyTable()) {
    if (absl::StartsWith(row.path, prefix)) return true;
  }
  return false;
}

// The words directly below `section`.
std::vector<absl::string_view> KeysOf(absl::string_view section) {
  const std::string prefix = section.empty() ? "" : absl::StrCat(section, ".");
  std::vector<absl::string_view> keys;
  for (const KeyRow& row : KeyTable()) {
    absl::string_view rest = row.path;
    if (!absl::ConsumePrefix(&rest, prefix) || rest.empty()) continue;
    rest = rest.substr(0, rest.find('.'));
    if (keys.empty() || keys.back() != rest) keys.push_back(rest);
  }
  return keys;
}

// One walk over a tree.
class Walk {
 public:
  Walk(Draft& draft, std::vector<Violation>& violations)
      : draft_(draft), violations_(violations) {
    for (const Violation& violation : violations) {
      refused_.insert(violation.key_path);
    }
  }

  void Section(const YamlNode& node, absl::string_view section) {
    for (const YamlEntry& entry : node.entries) {
      if (violations_.size() >= kMaxViolations) return;  // Hints cost time.
      const std::string path = ChildPath(section, entry.key);
      // An alias or a tag has been reported; its value means nothing.
      if (refused_.count(path) > 0 && !entry.value.IsMap()) continue;
      Key(entry, section, path);
    }
  }

 private:
  void Key(const YamlEntry& entry, absl::string_view section,
           const std::string& path) {
    const KeyRow* const row = FindRow(path);
    if (entry.value.IsMap() && IsSection(path)) {
      draft_.given.insert(path);
      if (path == "evaluate") draft_.spec.evaluate.emplace();
      Section(entry.value, path);
    } else if (row != nullptr) {
      const size_t before = violations_.size();
      row->read(entry.value, Place{path, draft_, violations_});
      if (violations_.size() == before) draft_.given.insert(path);
    } else if (IsSection(path)) {
      violations_.push_back(
          {path, absl::StrCat("expected a mapping of the keys ",
                              absl::StrJoin(KeysOf(path), " "), ", got ",
                              Describe(entry.value))});
    } else {
      violations_.push_back({path, UnknownKey(section, entry.key)});
    }
  }

  // The keys of a section are listed once: all errors go into one status,
  // which has room for a few kilobytes (common/rpc/grpc_status.h).
  std::string UnknownKey(absl::string_view section, absl::string_view key) {
    const std::string hint = HintForUnknownKey(section, key, AllKeyPaths());
    if (!hint.empty()) return absl::StrCat("unknown key; ", hint);
    if (!listed_.insert(std::string(section)).second) return "unknown key";
    return absl::StrCat("unknown key; the keys here are ",
                        absl::StrJoin(KeysOf(section), " "));
  }

  Draft& draft_;
  std::vector<Violation>& violations_;
  std::set<std::string> refused_;  // key paths that were wrong before
  std::set<std::string> listed_;   // sections whose keys were listed
};

}  // namespace

const std::vector<absl::string_view>& AllKeyPaths() {
  static const auto* const paths = [] {
    auto* all = new std::vector<absl::string_view>();
    for (const KeyRow& row : KeyTable()) all->push_back(row.path);
    return all;
  }();
  return *paths;
}

void ReadJob(const YamlNode& root, Draft& draft,
             std::vector<Violation>& violations) {
  if (!root.IsMap()) {
    violations.push_back({"", absl::StrCat("expected a mapping of the keys ",
                                           absl::StrJoin(KeysOf(""), " "),
                                           ", got ", Describe(root))});
    return;
  }
  Walk(draft, violations).Section(root, "");
}

}  // namespace penstock::coordinator::spec
