// What data.train or data.validation names: its format and its files.
#ifndef PENSTOCK_SERVER_DATA_INPUT_FILES_H_
#define PENSTOCK_SERVER_DATA_INPUT_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/data/input_file.h"

namespace penstock::server::data {

enum class Format {
  kAuto,     // By the name, see OpenInput.
  kText,     // Bytes; the byte tokenizer makes each a token (vocabulary 256).
  kJsonl,    // JSON lines: tokens, or a text field and the byte tokenizer.
  kNanogpt,  // nanoGPT's .bin: token ids as u16, little endian, no header.
};
absl::string_view Name(Format format);  // "text"

struct ListedFile {
  std::string path;
  int64_t bytes = 0;

  bool operator==(const ListedFile&) const = default;
};

struct Input {
  Format format = Format::kText;  // Never kAuto.
  std::vector<std::unique_ptr<InputFile>>
      files;  // In name order; at least one.

  int64_t bytes() const;  // All files together; at least 1.
  std::vector<ListedFile> List() const;
};

// Opens the file `path`, or the files of the folder `path` in the order of
// their names' bytes: .txt for text, .jsonl for jsonl; others, hidden ones and
// subfolders are left out.
//
// kAuto: .jsonl is jsonl, .bin nanogpt, anything else text; of a folder as of a
// file, because the coordinator, which sees the name alone, decides the same.
//
// NotVisible() (input_file.h) for a file or folder that cannot be read.
// InvalidArgument: an empty file, a folder without fitting files or, as kAuto,
// with both kinds, a folder of nanogpt files, an odd number of nanogpt bytes, a
// file of llm.c's (by its magic number) as nanogpt.
absl::StatusOr<Input> OpenInput(absl::string_view path, Format format,
                                const PieceDone& piece_done);

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_INPUT_FILES_H_
