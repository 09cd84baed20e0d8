#include "server/data/input_files.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file/folder.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {
namespace {

// More files than this are opened for each read, so that descriptors last.
constexpr size_t kMaxKeptDescriptors = 64;

// llm.c's token files start with one of these numbers (u32, little endian),
// its first form for ids of two bytes, the other for ids of four. Read as
// nanoGPT's they would begin with the id 55432 or 55713, more than any
// vocabulary of two-byte ids that is in use.
constexpr uint32_t kLlmcMagics[] = {20240520, 20240801};

absl::Status Refuse(absl::string_view path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

Format ByName(absl::string_view path) {
  if (absl::EndsWith(path, ".jsonl")) return Format::kJsonl;
  if (absl::EndsWith(path, ".bin")) return Format::kNanogpt;
  return Format::kText;
}

// The regular files in `folder` that end with `extension`, by name.
absl::StatusOr<std::vector<std::string>> ListFolder(
    const std::string& folder, absl::string_view extension) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : common::file::ListFolder(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code unreadable;
    if (absl::EndsWith(name, extension) && !absl::StartsWith(name, ".") &&
        entry.is_regular_file(unreadable)) {
      paths.push_back(entry.path().string());
    }
  }
  if (error) {
    return NotVisible(common::status::FileError(
        error.value(), absl::StrCat(folder, ": cannot be read")));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct Selection {
  Format format;
  std::vector<std::string> paths;
};

absl::StatusOr<Selection> SelectFromFolder(const std::string& folder,
                                           Format given) {
  const Format format = given == Format::kAuto ? ByName(folder) : given;
  if (format == Format::kNanogpt) {
    return Refuse(folder,
                  "is a folder; format nanogpt takes one file, as "
                  "FOLDER/train.bin");
  }
  Selection text{.format = Format::kText};
  Selection jsonl{.format = Format::kJsonl};
  ASSIGN_OR_RETURN(text.paths, ListFolder(folder, ".txt"));
  ASSIGN_OR_RETURN(jsonl.paths, ListFolder(folder, ".jsonl"));
  const bool is_text = format == Format::kText;
  Selection& selected = is_text ? text : jsonl;
  const Selection& other = is_text ? jsonl : text;
  if (given == Format::kAuto && !text.paths.empty() && !jsonl.paths.empty()) {
    return Refuse(folder,
                  "holds .txt and .jsonl files; say which with data.format");
  }
  if (!selected.paths.empty()) return std::move(selected);
  return Refuse(
      folder,
      absl::StrCat(
          "is a folder without ", is_text ? ".txt" : ".jsonl", " files",
          other.paths.empty()
              ? ""
              : absl::StrCat("; for its ", is_text ? ".jsonl" : ".txt",
                             " files say data.format: ", Name(other.format))));
}

absl::StatusOr<Selection> Select(const std::string& path, Format format) {
  std::error_code ignored;  // InputFile::Open says what is wrong.
  if (std::filesystem::is_directory(path, ignored)) {
    return SelectFromFolder(path, format);
  }
  return Selection{.format = format == Format::kAuto ? ByName(path) : format,
                   .paths = {path}};
}

absl::Status CheckNotLlmc(const InputFile& file) {
  uint8_t head[4];
  if (file.bytes() < 4) return absl::OkStatus();
  RETURN_IF_ERROR(file.Read(
      0, absl::MakeSpan(reinterpret_cast<std::byte*>(head), sizeof(head))));
  const uint32_t magic =
      head[0] | head[1] << 8 | head[2] << 16 | uint32_t{head[3]} << 24;
  if (std::find(std::begin(kLlmcMagics), std::end(kLlmcMagics), magic) ==
      std::end(kLlmcMagics)) {
    return absl::OkStatus();
  }
  return Refuse(file.path(),
                absl::StrCat("is a token file of llm.c (magic ", magic,
                             "), not of nanoGPT: llm.c token files are not "
                             "built yet"));
}

}  // namespace

absl::string_view Name(Format format) {
  switch (format) {
    case Format::kAuto:
      return "auto";
    case Format::kText:
      return "text";
    case Format::kJsonl:
      return "jsonl";
    case Format::kNanogpt:
      return "nanogpt";
  }
  return "unknown";
}

int64_t Input::bytes() const {
  int64_t sum = 0;
  for (const auto& file : files) sum += file->bytes();
  return sum;
}

std::vector<ListedFile> Input::List() const {
  std::vector<ListedFile> list;
  for (const auto& file : files) {
    list.push_back({.path = file->path(), .bytes = file->bytes()});
  }
  return list;
}

absl::StatusOr<Input> OpenInput(absl::string_view path, Format format,
                                const PieceDone& piece_done) {
  ASSIGN_OR_RETURN(const Selection selection,
                   Select(std::string(path), format));
  const Descriptor descriptor = selection.paths.size() > kMaxKeptDescriptors
                                    ? Descriptor::kEachRead
                                    : Descriptor::kKept;
  Input input{.format = selection.format};
  for (const std::string& name : selection.paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                     InputFile::Open(name, descriptor, piece_done));
    input.files.push_back(std::move(file));
  }
  if (input.bytes() == 0) {
    return Refuse(path, input.files[0]->path() == path
                            ? "is empty"
                            : "is a folder whose files are all empty");
  }
  if (input.format == Format::kNanogpt) {
    const InputFile& file = *input.files[0];
    RETURN_IF_ERROR(CheckNotLlmc(file));
    if (file.bytes() % 2 != 0) {
      return Refuse(file.path(), absl::StrCat(file.bytes(),
                                              " bytes are no whole number of "
                                              "2-byte token ids"));
    }
  }
  return input;
}

}  // namespace penstock::server::data
