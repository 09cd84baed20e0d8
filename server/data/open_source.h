// Opens one path of a job's data, whatever its format, and checks it.
#ifndef PENSTOCK_SERVER_DATA_OPEN_SOURCE_H_
#define PENSTOCK_SERVER_DATA_OPEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/data/input_files.h"
#include "server/data/sequence_source.h"
#include "server/data/token_stream.h"

namespace penstock::server::data {

struct SourceOptions {
  std::string path;
  Format format = Format::kAuto;
  std::string field;
  // nullopt: see Dataset::Options.
  std::optional<int64_t> sequence_length;
  std::optional<int64_t> text_sequence_length;
  int64_t context = 0;
  int64_t vocab = 0;
  PieceDone piece_done;  // Of each scan; may be empty.
};

struct OpenedSource {
  std::unique_ptr<SequenceSource> source;
  Format format = Format::kText;
  int64_t line_tokens = 0;  // Token lines: input_ids a line; else 0.
  Content content;
  std::vector<ListedFile> files;
};

// Reads all of the data once. Errors as Dataset::Open, without the key.
absl::StatusOr<OpenedSource> OpenSource(const SourceOptions& options);

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_OPEN_SOURCE_H_
