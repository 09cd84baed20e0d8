#include "coordinator/spec/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/text/quote.h"
#include "common/text/utf8.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::spec {
namespace {

std::string TooDeep() {
  return absl::StrCat("nested deeper than ", kMaxDepth, " levels");
}

bool IsPlainWord(absl::string_view key) {
  if (key.empty() || key.size() > 64) return false;
  for (const char c : key) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-') return false;
  }
  return true;
}

// Thrown out of an event to end the parse: what follows cannot be placed.
// Never leaves ParseYaml.
struct Stop {
  YAML::Mark mark;
  std::string message;
};

// Builds the tree from yaml-cpp's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(PositionMap& positions, std::vector<Violation>& violations)
      : positions_(positions), violations_(violations) {}

  // Where the document starts.
  const YAML::Mark& start() const { return start_; }
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseDecoration(Begin(mark), "", anchor);
    Store(YamlNode{});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(Begin(mark),
           "aliases (*name) are not allowed; quote a text that starts with *");
    Store(YamlNode{});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    if (ExpectsKey()) {
      TakeKey(mark, tag, anchor, value);
      return;
    }
    RefuseDecoration(Begin(mark), tag, anchor);
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.scalar = value;
    node.quoted = tag == "!";
    Store(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Seen {
    int line;      // of the key, from 1
    size_t index;  // into the map's entries
  };
  // A list or map being filled.
  struct Level {
    YamlNode node;
    std::string path;
    bool has_key = false;  // of a map: the next event is the value of `key`
    std::string key;
    YAML::Mark key_mark;
    std::map<std::string, Seen> seen;  // of a map
  };

  bool ExpectsKey() const {
    return !levels_.empty() && levels_.back().node.IsMap() &&
           !levels_.back().has_key;
  }

  void Refuse(const std::string& path, absl::string_view message) {
    Record({path, std::string(message)}, violations_);
  }

  void RefuseDecoration(const std::string& path, absl::string_view tag,
                        YAML::anchor_t anchor) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(path,
             "tags (!name) are not allowed; quote a text that starts with !");
    }
    if (anchor != 0) {
      Refuse(path,
             "anchors (&name) are not allowed; quote a text that starts "
             "with &");
    }
  }

  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMaxValues) {
      throw Stop{mark, absl::StrCat("holds more than ", kMaxValues, " values")};
    }
  }

  void TakeKey(const YAML::Mark& mark, absl::string_view tag,
               YAML::anchor_t anchor, const std::string& key) {
    Level& level = levels_.back();
    level.has_key = true;
    level.key = key;
    level.key_mark = mark;
    const std::string path = ChildPath(level.path, key);
    RefuseDecoration(path, tag, anchor);
    const auto seen = level.seen.find(key);
    if (seen != level.seen.end()) {
      Refuse(path,
             absl::StrCat("is given twice, first in line ", seen->second.line));
    }
  }

  // A value starts at `mark`: records its position, returns its key path. A
  // value in a map is shown where its key stands.
  std::string Begin(const YAML::Mark& mark) {
    if (ExpectsKey()) throw Stop{mark, "a key must be a word"};
    Count(mark);
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    const bool in_map = level.node.IsMap();
    const std::string path =
        in_map ? ChildPath(level.path, level.key)
               : ItemPath(level.path, level.node.items.size());
    const YAML::Mark& place = in_map ? level.key_mark : mark;
    positions_.AddFilePosition(path, place.line + 1, place.column + 1);
    return path;
  }

  void Store(YamlNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (!level.node.IsMap()) {
      level.node.items.push_back(std::move(node));
      return;
    }
    level.has_key = false;
    std::vector<YamlEntry>& entries = level.node.entries;
    const auto [seen, fresh] = level.seen.emplace(
        level.key, Seen{level.key_mark.line + 1, entries.size()});
    if (fresh) {
      entries.push_back({std::move(level.key), std::move(node)});
    } else {
      entries[seen->second.index].value = std::move(node);
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, YamlNode::Kind kind) {
    Level level;
    level.node.kind = kind;
    level.path = Begin(mark);
    RefuseDecoration(level.path, tag, anchor);
    if (static_cast<int>(levels_.size()) >= kMaxDepth) {
      throw Stop{mark, TooDeep()};
    }
    levels_.push_back(std::move(level));
  }

  void Close() {
    YamlNode node = std::move(levels_.back().node);
    levels_.pop_back();
    Store(std::move(node));
  }

  PositionMap& positions_;
  std::vector<Violation>& violations_;
  YAML::Mark start_;
  YamlNode root_;
  std::vector<Level> levels_;
  int nodes_ = 0;
};

// Whether brackets are nested deeper than any file may be: of one that is not
// right otherwise either. Quoted ones count too.
bool NestedTooDeep(absl::string_view bytes) {
  int depth = 0;
  for (const char c : bytes) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

// Line and column, from 1, of byte `offset`.
void PlaceRoot(absl::string_view bytes, size_t offset, PositionMap& positions) {
  int line = 1;
  int column = 1;
  for (const char c : bytes.substr(0, offset)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  positions.AddFilePosition("", line, column);
}

}  // namespace

const YamlNode* YamlNode::Find(absl::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string ChildPath(absl::string_view key_path, absl::string_view key) {
  const std::string word =
      IsPlainWord(key) ? std::string(key) : common::text::Quoted(key);
  return key_path.empty() ? word : absl::StrCat(key_path, ".", word);
}

std::string ItemPath(absl::string_view key_path, size_t index) {
  return absl::StrCat(key_path, "[", index, "]");
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a mapping";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted
             ? absl::StrCat("the text ", common::text::Quoted(node.scalar))
             : common::text::Quoted(node.scalar);
}

std::optional<YamlNode> ParseYaml(absl::string_view bytes,
                                  PositionMap& positions,
                                  std::vector<Violation>& violations) {
  if (bytes.size() > kMaxJobFileBytes) {
    violations.push_back(
        {"", absl::StrCat("has ", bytes.size(), " bytes; at most ",
                          kMaxJobFileBytes, " (1 MiB) are allowed")});
    return std::nullopt;
  }
  const size_t bad = common::text::FindNotText(bytes);
  if (bad != absl::string_view::npos) {
    PlaceRoot(bytes, bad, positions);
    violations.push_back({"",
                          "is not UTF-8 text: a control character or an "
                          "invalid sequence"});
    return std::nullopt;
  }
  const auto fail = [&](const YAML::Mark& mark, absl::string_view message) {
    if (!mark.is_null()) {
      positions.AddFilePosition("", mark.line + 1, mark.column + 1);
    }
    // yaml-cpp calls many open brackets something else.
    violations.push_back(
        {"", NestedTooDeep(bytes) ? TooDeep() : std::string(message)});
  };
  // The only try block of the room's YAML side: yaml-cpp and Stop end here.
  try {
    std::istringstream stream{std::string(bytes)};
    YAML::Parser parser(stream);
    TreeBuilder builder(positions, violations);
    parser.HandleNextDocument(builder);
    std::vector<Violation> ignored;
    PositionMap elsewhere;
    TreeBuilder second(elsewhere, ignored);
    if (parser.HandleNextDocument(second)) {
      fail(second.start(), "holds more than one YAML document");
    }
    return builder.TakeRoot();
  } catch (const Stop& stop) {
    fail(stop.mark, stop.message);
  } catch (const YAML::Exception& error) {
    fail(error.mark, absl::StrCat("not valid YAML: ", error.msg));
  } catch (const std::exception& error) {
    fail(YAML::Mark::null_mark(), error.what());
  }
  return std::nullopt;
}

}  // namespace penstock::coordinator::spec
