#include "server/data/flat_token_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/data/vocabulary.h"

namespace penstock::server::data {
namespace {

int32_t TokenAt(const uint8_t* bytes, int64_t index, int token_bytes) {
  if (token_bytes == 1) return bytes[index];
  return bytes[2 * index] | bytes[2 * index + 1] << 8;
}

// The largest id among `count` tokens.
int32_t Largest(const uint8_t* bytes, int64_t count, int token_bytes) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, TokenAt(bytes, i, token_bytes));
  }
  return largest;
}

// Names the first token of the piece that `vocab` does not hold.
absl::Status NameTooLarge(const InputFile& file, int64_t offset,
                          const uint8_t* bytes, int token_bytes,
                          int64_t vocab) {
  int64_t i = 0;
  while (TokenAt(bytes, i, token_bytes) < vocab) ++i;
  return TooSmallVocabulary(
      absl::StrCat(file.path(), ": byte ", offset + i * token_bytes),
      TokenAt(bytes, i, token_bytes), vocab);
}

}  // namespace

absl::StatusOr<FlatTokenStream::Scanned> FlatTokenStream::Open(Input input,
                                                               int64_t vocab) {
  CHECK(input.format == Format::kText || input.format == Format::kNanogpt);
  const int token_bytes = input.format == Format::kText ? 1 : 2;
  common::digest::Sha256 sha;
  Content content;
  for (const auto& file : input.files) {
    sha.UpdateU64(file->bytes());
    RETURN_IF_ERROR(file->Scan([&](int64_t offset, absl::string_view piece) {
      sha.Update(piece);
      const auto* bytes = reinterpret_cast<const uint8_t*>(piece.data());
      const int64_t count = piece.size() / token_bytes;
      const int32_t largest = Largest(bytes, count, token_bytes);
      content.largest_id = std::max(content.largest_id, largest);
      content.tokens += count;
      if (largest < vocab) return absl::OkStatus();
      return NameTooLarge(*file, offset, bytes, token_bytes, vocab);
    }));
  }
  content.digest = sha.Finish();
  return Scanned{.stream = std::unique_ptr<FlatTokenStream>(
                     new FlatTokenStream(std::move(input), token_bytes)),
                 .content = content};
}

FlatTokenStream::FlatTokenStream(Input input, int token_bytes)
    : input_(std::move(input)), token_bytes_(token_bytes), starts_{0} {
  for (const auto& file : input_.files) {
    starts_.push_back(starts_.back() + file->bytes() / token_bytes_);
  }
}

absl::Status FlatTokenStream::Read(int64_t first,
                                   absl::Span<int32_t> out) const {
  CHECK(first >= 0 && static_cast<int64_t>(out.size()) <= tokens() - first);
  // The last file that starts at or before `first`.
  size_t file = std::upper_bound(starts_.begin(), starts_.end(), first) -
                starts_.begin() - 1;
  while (!out.empty()) {
    const int64_t left = starts_[file + 1] - first;
    const auto part = out.subspan(0, std::min<int64_t>(left, out.size()));
    RETURN_IF_ERROR(ReadFile(*input_.files[file], first - starts_[file], part));
    out.remove_prefix(part.size());
    first += part.size();
    ++file;
  }
  return absl::OkStatus();
}

absl::Status FlatTokenStream::ReadFile(const InputFile& file, int64_t first,
                                       absl::Span<int32_t> out) const {
  // The raw tokens are narrower than `out`'s elements: they are read into its
  // end and widened from the front, so nothing is written before it is read.
  auto* const raw = reinterpret_cast<std::byte*>(out.data()) +
                    out.size() * (sizeof(int32_t) - token_bytes_);
  RETURN_IF_ERROR(file.Read(first * token_bytes_,
                            absl::MakeSpan(raw, out.size() * token_bytes_)));
  const auto* bytes = reinterpret_cast<const uint8_t*>(raw);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = TokenAt(bytes, i, token_bytes_);
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::data
