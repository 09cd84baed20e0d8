// What is wrong with a job, one rule each, and where the key stands.
//
// Rules return key paths (`pipeline.partition[2]`), never positions: a rule of
// the planner, of the schedule verifier or of the data checks knows nothing of
// files. The PositionMap that ParseJob returns turns them into FILE:LINE:COL.
#ifndef PENSTOCK_COORDINATOR_SPEC_VIOLATION_H_
#define PENSTOCK_COORDINATOR_SPEC_VIOLATION_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::coordinator::spec {

struct Violation {
  // Dotted, list items as [i] from 0; "" is the file as a whole.
  std::string key_path;
  // What was found, what was expected, and what to do. No position in it.
  std::string message;

  bool operator==(const Violation&) const = default;
};

// A job with more errors is not one that somebody will mend line by line.
inline constexpr size_t kMaxViolations = 1000;

// Adds `violation` unless there are so many already: for rules that may be
// broken as often as the job has values. A job never becomes right by it, but
// the keys that are left out count as sound.
void Record(Violation violation, std::vector<Violation>& violations);

// What set a key over the job file: `--set KEY=...`, or a flag that stands for
// it.
struct OverrideOrigin {
  std::string key;
  std::string flag;  // "--stages"; "": `--set`

  // "--set KEY", or the flag.
  std::string Shown() const;
};

// Where each key of a job file was given. Thread-compatible.
class PositionMap {
 public:
  PositionMap() = default;
  explicit PositionMap(absl::string_view file) : file_(file) {}

  // Lines and columns count from 1. The newest word on a key path wins. A path
  // longer than any key's, kMaxPathBytes, is not kept: it is shown where its
  // section stands.
  void AddFilePosition(absl::string_view key_path, int line, int column);
  void AddOverride(absl::string_view key_path, const OverrideOrigin& origin);
  // Forgets `key_path` and everything below it.
  void Remove(absl::string_view key_path);

  // "FILE:LINE:COL", "--set KEY" or "--FLAG" of the key, else of the nearest
  // enclosing section that was given, else "FILE:1:1".
  std::string Where(absl::string_view key_path) const;

  static constexpr size_t kMaxPathBytes = 256;

 private:
  struct Place {
    int line = 1;  // of an override: its place in their order
    int column = 1;
    std::optional<OverrideOrigin> origin;  // none: the file
  };

  // The place of the key or of its nearest given section.
  Place Find(absl::string_view key_path) const;

  friend std::string Render(const Violation&, const PositionMap&);
  friend std::string RenderAll(absl::Span<const Violation>, const PositionMap&);

  std::string file_ = "job.yaml";
  int overrides_ = 0;  // AddOverride calls so far
  std::map<std::string, Place, std::less<>> places_;
};

// "FILE:LINE:COL: key.path: message", "--set KEY: message", "--FLAG: message".
std::string Render(const Violation& violation, const PositionMap& positions);

// One line each, in the order of the file, overrides last.
std::string RenderAll(absl::Span<const Violation> violations,
                      const PositionMap& positions);

// InvalidArgument with RenderAll's text and reason INVALID_SPEC; OK where
// there is no violation.
absl::Status ToStatus(absl::Span<const Violation> violations,
                      const PositionMap& positions);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_VIOLATION_H_
