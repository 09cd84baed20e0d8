#include "coordinator/spec/violation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"

namespace penstock::coordinator::spec {
namespace {

// "a.b[2]" -> "a.b" -> "a" -> "".
absl::string_view Enclosing(absl::string_view key_path) {
  const size_t end = key_path.find_last_of(".[");
  return end == absl::string_view::npos ? "" : key_path.substr(0, end);
}

}  // namespace

void Record(Violation violation, std::vector<Violation>& violations) {
  if (violations.size() >= kMaxViolations) return;
  violations.push_back(std::move(violation));
}

std::string OverrideOrigin::Shown() const {
  return flag.empty() ? absl::StrCat("--set ", key) : flag;
}

void PositionMap::AddFilePosition(absl::string_view key_path, int line,
                                  int column) {
  if (key_path.size() > kMaxPathBytes) return;
  places_[std::string(key_path)] = Place{.line = line, .column = column};
}

void PositionMap::AddOverride(absl::string_view key_path,
                              const OverrideOrigin& origin) {
  if (key_path.size() > kMaxPathBytes) return;
  places_[std::string(key_path)] =
      Place{.line = ++overrides_, .origin = origin};
}

void PositionMap::Remove(absl::string_view key_path) {
  const auto self = places_.find(key_path);
  if (self != places_.end()) places_.erase(self);
  // Not one range: "a-b" stands between "a" and "a.b".
  for (const char* below : {".", "["}) {
    const std::string prefix = absl::StrCat(key_path, below);
    auto it = places_.lower_bound(prefix);
    while (it != places_.end() && absl::StartsWith(it->first, prefix)) {
      it = places_.erase(it);
    }
  }
}

PositionMap::Place PositionMap::Find(absl::string_view key_path) const {
  for (absl::string_view key = key_path; !key.empty(); key = Enclosing(key)) {
    const auto it = places_.find(key);
    if (it != places_.end()) return it->second;
  }
  const auto root = places_.find("");
  return root == places_.end() ? Place{} : root->second;
}

std::string PositionMap::Where(absl::string_view key_path) const {
  const Place place = Find(key_path);
  if (place.origin.has_value()) return place.origin->Shown();
  return absl::StrCat(file_, ":", place.line, ":", place.column);
}

std::string Render(const Violation& violation, const PositionMap& positions) {
  const std::string where = positions.Where(violation.key_path);
  // "--set pipeline.stages: pipeline.stages: ..." would say the key twice.
  const auto origin = positions.Find(violation.key_path).origin;
  const bool named = violation.key_path.empty() ||
                     (origin.has_value() && origin->key == violation.key_path);
  return named ? absl::StrCat(where, ": ", violation.message)
               : absl::StrCat(where, ": ", violation.key_path, ": ",
                              violation.message);
}

std::string RenderAll(absl::Span<const Violation> violations,
                      const PositionMap& positions) {
  using Order = std::tuple<bool, int, int>;
  std::vector<std::pair<Order, std::string>> lines;
  for (const Violation& violation : violations) {
    const auto place = positions.Find(violation.key_path);
    lines.emplace_back(
        Order(place.origin.has_value(), place.line, place.column),
        Render(violation, positions));
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return absl::StrJoin(lines, "\n", [](std::string* out, const auto& line) {
    absl::StrAppend(out, line.second);
  });
}

absl::Status ToStatus(absl::Span<const Violation> violations,
                      const PositionMap& positions) {
  if (violations.empty()) return absl::OkStatus();
  return common::status::WithReason(
      absl::InvalidArgumentError(RenderAll(violations, positions)),
      common::status::kReasonInvalidSpec);
}

}  // namespace penstock::coordinator::spec
