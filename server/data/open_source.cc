#include "server/data/open_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/data/flat_token_stream.h"
#include "server/data/json_lines.h"
#include "server/data/json_text_stream.h"
#include "server/data/token_line_source.h"
#include "server/data/window_source.h"

namespace penstock::server::data {
namespace {

absl::Status CheckLength(const SourceOptions& options,
                         int64_t sequence_length) {
  if (sequence_length < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.sequence_length must be at least 1, not ", sequence_length));
  }
  if (sequence_length > options.context) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": sequences predict ", sequence_length,
        " tokens each, more than model.context ", options.context));
  }
  return absl::OkStatus();
}

// Windows of `stream`, which came from the opened source's files.
absl::Status CutWindows(const SourceOptions& options,
                        std::unique_ptr<TokenStream> stream,
                        OpenedSource& opened) {
  const int64_t length = options.sequence_length.value_or(
      options.text_sequence_length.value_or(options.context));
  RETURN_IF_ERROR(CheckLength(options, length));
  const int64_t tokens = stream->tokens();
  if (WindowCount(tokens, length) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": holds ", tokens, tokens == 1 ? " token" : " tokens",
        ", too few for one sequence of ", length,
        " + 1; give more data, or a smaller data.sequence_length or "
        "model.context"));
  }
  opened.source = std::make_unique<WindowSource>(std::move(stream), length);
  return absl::OkStatus();
}

absl::Status OpenTokenLines(const SourceOptions& options,
                            std::unique_ptr<JsonLines> lines,
                            OpenedSource& opened) {
  opened.line_tokens = lines->line_tokens();
  const int64_t length = opened.line_tokens - 1;
  if (options.sequence_length.value_or(length) != length) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path, ": lines of ", opened.line_tokens,
                     " input_ids predict ", length, " tokens each, but ",
                     "data.sequence_length is ", *options.sequence_length));
  }
  RETURN_IF_ERROR(CheckLength(options, length));
  opened.source = std::make_unique<TokenLineSource>(std::move(lines));
  return absl::OkStatus();
}

absl::Status OpenJsonLines(const SourceOptions& options, Input input,
                           OpenedSource& opened) {
  ASSIGN_OR_RETURN(JsonLines::Scanned scanned,
                   JsonLines::Open(std::move(input), {.field = options.field,
                                                      .vocab = options.vocab}));
  opened.content = scanned.content;
  if (scanned.lines->kind() == LineKind::kTokens) {
    return OpenTokenLines(options, std::move(scanned.lines), opened);
  }
  return CutWindows(options,
                    std::make_unique<JsonTextStream>(std::move(scanned.lines)),
                    opened);
}

}  // namespace

absl::StatusOr<OpenedSource> OpenSource(const SourceOptions& options) {
  ASSIGN_OR_RETURN(Input input,
                   OpenInput(options.path, options.format, options.piece_done));
  OpenedSource opened;
  opened.format = input.format;
  opened.files = input.List();
  if (input.format == Format::kJsonl) {
    RETURN_IF_ERROR(OpenJsonLines(options, std::move(input), opened));
    return opened;
  }
  ASSIGN_OR_RETURN(FlatTokenStream::Scanned scanned,
                   FlatTokenStream::Open(std::move(input), options.vocab));
  opened.content = scanned.content;
  RETURN_IF_ERROR(CutWindows(options, std::move(scanned.stream), opened));
  return opened;
}

}  // namespace penstock::server::data
