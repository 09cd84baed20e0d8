#include "coordinator/dispatch/first_cause.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::dispatch {

using common::time::MonotonicTime;

void FirstCause::EdgeFailed(const EdgeFailure& failure) {
  edges_.push_back(failure);
}

void FirstCause::SessionBroken(absl::string_view stage, MonotonicTime now) {
  broken_[std::string(stage)] = now;
}

void FirstCause::SessionRestored(absl::string_view stage) {
  broken_.erase(std::string(stage));
  refused_.erase(std::string(stage));
}

void FirstCause::MonitorRefused(absl::string_view stage, MonotonicTime now) {
  refused_[std::string(stage)] = now;
}

void FirstCause::Forgive(absl::Duration gap) {
  for (EdgeFailure& edge : edges_) edge.at += gap;
  for (auto& [stage, at] : broken_) at += gap;
  for (auto& [stage, at] : refused_) at += gap;
}

std::optional<LostStage> FirstCause::Lost() const {
  for (const auto& [stage, broken] : broken_) {
    for (const EdgeFailure& edge : edges_) {
      if (edge.peer != stage) continue;
      if (broken - edge.at <= window_) {
        return LostStage{stage,
                         absl::StrCat("its session broke and ", edge.reporter,
                                      " lost its data edge to it")};
      }
    }
    const auto refused = refused_.find(stage);
    if (refused != refused_.end() && refused->second - broken <= window_) {
      return LostStage{
          stage, "its session broke and its monitor port refuses connections"};
    }
  }
  return std::nullopt;
}

std::optional<EdgeFailure> FirstCause::Unexplained(MonotonicTime now) const {
  if (now < NextDeadline()) return std::nullopt;
  const auto reports = [this](const std::string& stage) {
    return std::any_of(
        edges_.begin(), edges_.end(),
        [&](const EdgeFailure& edge) { return edge.reporter == stage; });
  };
  for (const EdgeFailure& edge : edges_) {
    if (!reports(edge.peer)) return edge;
  }
  return edges_.front();
}

MonotonicTime FirstCause::NextDeadline() const {
  return edges_.empty() ? MonotonicTime::Infinite()
                        : edges_.front().at + window_;
}

}  // namespace penstock::coordinator::dispatch
