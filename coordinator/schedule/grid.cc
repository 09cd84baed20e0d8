#include "coordinator/schedule/grid.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {
namespace {

// A window of `size` places around `at`, inside [0, count).
struct Window {
  int begin;
  int end;
};
Window Around(int at, int size, int count) {
  const int begin = std::clamp(at - size / 2, 0, std::max(0, count - size));
  return {begin, std::min(count, begin + size)};
}

constexpr int kMaxRows = 9;
constexpr int kMaxColumns = 12;
constexpr int kMaxClauses = 12;

std::string Padded(std::string cell, size_t width) {
  if (cell.size() < width) cell.append(width - cell.size(), ' ');
  return cell;
}

std::string WithoutTrailingBlanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string MarkedGrid(const Schedule& schedule, Place place) {
  const int rows = static_cast<int>(schedule.orders.size());
  int columns = place.position + 1;
  for (const auto& order : schedule.orders) {
    columns = std::max(columns, static_cast<int>(order.size()));
  }
  const Window row = Around(place.rank, kMaxRows, rows);
  const Window column = Around(place.position, kMaxColumns, columns);

  // Cells first, so that a column is as wide as its widest.
  std::vector<std::vector<std::string>> cells;
  cells.push_back({"position"});
  for (int p = column.begin; p < column.end; ++p) {
    cells.back().push_back(absl::StrCat(" ", p));
  }
  for (int r = row.begin; r < row.end; ++r) {
    cells.push_back({absl::StrCat("rank ", r)});
    const std::vector<Command>& order = schedule.orders[r];
    for (int p = column.begin; p < column.end; ++p) {
      const std::string command =
          p < static_cast<int>(order.size()) ? ToString(order[p]) : "";
      const bool marked = r == place.rank && p == place.position;
      cells.back().push_back(marked ? absl::StrCat(">", command, "<")
                                    : absl::StrCat(" ", command));
    }
  }
  std::vector<size_t> width(cells[0].size(), 0);
  for (const auto& line : cells) {
    for (size_t i = 0; i < line.size(); ++i) {
      width[i] = std::max(width[i], line[i].size() + 1);
    }
  }
  std::string grid;
  for (const auto& line : cells) {
    std::string printed;
    for (size_t i = 0; i < line.size(); ++i) {
      absl::StrAppend(&printed, Padded(line[i], width[i]));
    }
    absl::StrAppend(&grid, WithoutTrailingBlanks(std::move(printed)), "\n");
  }
  return grid;
}

std::string Describe(const Schedule& schedule, Place place) {
  const std::vector<Command>& order = schedule.orders[place.rank];
  if (place.position >= static_cast<int>(order.size())) {
    return absl::StrCat("rank ", place.rank, ", end of its row");
  }
  return absl::StrCat("rank ", place.rank, ", position ", place.position, " (",
                      ToString(order[place.position]), ")");
}

absl::Status Violation(const Schedule& schedule, Place place,
                       absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(schedule.name, ": ", Describe(schedule, place), ": ", what,
                   "\n", MarkedGrid(schedule, place)));
}

std::string JoinCycle(const std::vector<std::string>& clauses) {
  std::string joined = "cycle:";
  const int count = static_cast<int>(clauses.size());
  for (int i = 0; i < count; ++i) {
    if (count > kMaxClauses && i == kMaxClauses / 2) {
      const int left_out = count - kMaxClauses;
      absl::StrAppend(&joined, "\n  ... ", left_out, " more ...");
      i += left_out;
    }
    absl::StrAppend(&joined, "\n  ", clauses[i]);
  }
  return joined;
}

}  // namespace penstock::coordinator::schedule
