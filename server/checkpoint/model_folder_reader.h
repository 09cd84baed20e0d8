// Reads the tensors of a Hugging Face model folder: model.safetensors, or the
// shards that model.safetensors.index.json lists.
//
// config.json is not read here (only the coordinator does); what the model
// should hold comes as a list of names and shapes. Open() looks at headers
// only, so every stage can check the whole folder and then read its own tensors
// alone.
#ifndef PENSTOCK_SERVER_CHECKPOINT_MODEL_FOLDER_READER_H_
#define PENSTOCK_SERVER_CHECKPOINT_MODEL_FOLDER_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/checkpoint/safetensors_file.h"

namespace penstock::server::checkpoint {

struct ExpectedTensor {
  std::string name;  // Canonical, as save_pretrained writes it.
  std::vector<int64_t> shape;
};

// Immutable; thread-safe.
class ModelFolderReader {
 public:
  struct Options {
    std::string folder;
    // Every tensor of the whole model, no name twice.
    std::vector<ExpectedTensor> expected;
    // "transformer." or "model.": names in the files may lack it, as those of a
    // bare GPT2Model or LlamaModel do.
    std::string prefix;
    // With tied embeddings "lm_head.weight" may be there too, equal to this
    // tensor; empty otherwise.
    std::string tied_head_source;
  };

  // Checks the headers of all files: each expected tensor is there once, with
  // its shape and a dtype of f32, f16 or bf16, and nothing else is, except what
  // old transformers also wrote: *.attn.bias, *.attn.masked_bias,
  // *.rotary_emb.inv_freq. InvalidArgument, naming file and tensor, for the
  // first violation; NotFound where the folder has no safetensors file.
  static absl::StatusOr<ModelFolderReader> Open(const Options& options);

  // One expected tensor, by canonical name, row-major. REQUIRES: an expected
  // name, and as many values as its shape has elements. InvalidArgument, naming
  // file and tensor, where it holds NaN or infinity.
  absl::Status Read(absl::string_view name, absl::Span<float> values,
                    const PieceRead& piece_read = {}) const;

  // InvalidArgument where the folder has a tied head's matrix that differs from
  // the embedding. Reads both, piece by piece, up to the first difference: for
  // the stage that reads the embedding anyway.
  absl::Status CheckTiedHead(const PieceRead& piece_read = {}) const;

  // SHA-256, hex, of the files' names, sizes and headers, in order of name, and
  // of a fixed sample of each tensor's bytes: equal for two hosts that see the
  // same files, at the price of some 12 KB a tensor. Weights of another
  // training differ in nearly every value, so in the sample. A sample is one
  // piece. DataLoss as Read().
  absl::StatusOr<std::string> Digest(const PieceRead& piece_read = {}) const;

  // Paths of the files that hold tensors.
  std::vector<std::string> paths() const;

 private:
  // Where a tensor lies.
  struct Place {
    int file = 0;
    int tensor = 0;
  };

  explicit ModelFolderReader(const Options& options) : options_(options) {}
  absl::Status OpenFiles();
  // Of one tensor of a file: notes it, ignores it, or refuses it.
  absl::Status Admit(const Place& place);
  absl::Status CheckComplete() const;
  const SafetensorsTensor& TensorAt(const Place& place) const;
  // "FILE: tensor NAME", for errors.
  std::string Where(const Place& place) const;

  Options options_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;
  std::map<std::string, Place, std::less<>> places_;  // By canonical name.
};

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_MODEL_FOLDER_READER_H_
