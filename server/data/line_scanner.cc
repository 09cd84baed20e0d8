#include "server/data/line_scanner.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {
namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

absl::Status TooLong(int64_t number) {
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", number, " is longer than ", kMaxLineBytes >> 20, " MiB"));
}

}  // namespace

absl::Status LineScanner::Add(absl::string_view piece, Visitor visit) {
  while (true) {
    const size_t newline = piece.find('\n');
    const absl::string_view rest = piece.substr(0, newline);
    if (static_cast<int64_t>(unfinished_.size() + rest.size()) >
        kMaxLineBytes) {
      return TooLong(number_);
    }
    if (newline == absl::string_view::npos) {
      unfinished_.append(rest.data(), rest.size());
      return absl::OkStatus();
    }
    if (unfinished_.empty()) {
      RETURN_IF_ERROR(Emit(rest, visit));
    } else {
      unfinished_.append(rest.data(), rest.size());
      RETURN_IF_ERROR(Emit(unfinished_, visit));
      unfinished_.clear();
    }
    piece.remove_prefix(newline + 1);
  }
}

absl::Status LineScanner::Finish(Visitor visit) {
  RETURN_IF_ERROR(Emit(unfinished_, visit));
  unfinished_.clear();
  return absl::OkStatus();
}

absl::Status LineScanner::Emit(absl::string_view bytes, Visitor visit) {
  Line line{.number = number_, .offset = offset_, .bytes = bytes};
  ++number_;
  offset_ += static_cast<int64_t>(bytes.size()) + 1;
  if (line.offset == 0 && absl::StartsWith(bytes, kByteOrderMark)) {
    line.bytes.remove_prefix(kByteOrderMark.size());
    line.offset += kByteOrderMark.size();
  }
  if (line.bytes.find_first_not_of(" \t\r") == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return visit(line);
}

}  // namespace penstock::server::data
