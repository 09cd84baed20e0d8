// The texts of JSON lines as one stream of bytes, a newline after each text.
#ifndef PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_
#define PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/sync/mutex.h"
#include "server/data/json_lines.h"
#include "server/data/token_stream.h"

namespace penstock::server::data {

// Decodes the lines that a read touches, and keeps the last text: windows that
// follow each other, and a window's ids and labels, mostly lie in one line.
// Thread-safe.
class JsonTextStream final : public TokenStream {
 public:
  // REQUIRES: lines->kind() is kText.
  explicit JsonTextStream(std::unique_ptr<JsonLines> lines)
      : lines_(std::move(lines)) {}

  int64_t tokens() const override;
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override;

 private:
  struct Text {
    int64_t line = 0;
    std::string bytes;
  };
  // Shared, as a thread may copy from it while another one's takes its place.
  absl::StatusOr<std::shared_ptr<const Text>> Decoded(int64_t line) const;

  const std::unique_ptr<JsonLines> lines_;
  mutable common::sync::Mutex mutex_;
  mutable std::shared_ptr<const Text> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_
