#include "server/checkpoint/model_index.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/text/quote.h"
#include "nlohmann/json.hpp"

namespace penstock::server::checkpoint {
namespace {

constexpr absl::string_view kWeightMap = "weight_map";
constexpr char kNeedsMap[] = "needs a weight_map of tensors to files";

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shard index: ", what));
}

bool IsPlainName(absl::string_view name) {
  return absl::EndsWith(name, ".safetensors") && name.front() != '.' &&
         name.size() <= 255 && !absl::StrContains(name, '/') &&
         !absl::StrContains(name, '\0');
}

// Keeps the weight_map while the JSON is read: whatever else is there takes no
// memory but a bit for each level. (The parser does not recurse.)
class IndexReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  ModelIndex TakeIndex() { return std::move(index_); }
  // Of what ended the parse.
  absl::Status error() const { return error_; }

  bool start_object(size_t) override {
    if (IsWeightMap()) {
      if (std::exchange(has_map_, true)) return Fail("has two weight_maps");
      in_map_ = true;
    } else if (depth_ > 0 && !Other()) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    // Nothing within the map is let in that has a level of its own.
    in_map_ = false;
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (!Other()) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) top_key_ = name;
    if (in_map_) tensor_ = name;
    return true;
  }
  bool string(std::string& value) override {
    if (!in_map_) return Other();
    if (value.empty() || !IsPlainName(value)) return BadShard();
    if (index_.shards.emplace(tensor_, std::move(value)).second) return true;
    return Fail(absl::StrCat("tensor ", common::text::Quoted(tensor_),
                             " is there twice"));
  }
  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(int64_t) override { return Other(); }
  bool number_unsigned(uint64_t) override { return Other(); }
  bool number_float(double, const std::string&) override { return Other(); }
  bool binary(nlohmann::json::binary_t&) override { return Other(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

 private:
  // Whether what begins now is weight_map's value.
  bool IsWeightMap() const { return depth_ == 1 && top_key_ == kWeightMap; }

  // Any value that is neither the map nor in it is ignored.
  bool Other() {
    if (in_map_) return BadShard();
    return depth_ == 0 || IsWeightMap() ? Fail(kNeedsMap) : true;
  }
  bool BadShard() {
    return Fail(absl::StrCat(
        "tensor ", common::text::Quoted(tensor_),
        " must map to the name of a .safetensors file in the folder"));
  }
  bool Fail(absl::string_view what) {
    error_ = Invalid(what);
    return false;
  }

  int64_t depth_ = 0;  // Objects and arrays that are open.
  std::string top_key_;
  bool has_map_ = false;
  bool in_map_ = false;
  std::string tensor_;  // Whose file comes.
  ModelIndex index_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<ModelIndex> ParseModelIndex(absl::string_view text) {
  IndexReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
    return reader.error();
  }
  ModelIndex index = reader.TakeIndex();
  if (index.shards.empty()) return Invalid(kNeedsMap);
  return index;
}

}  // namespace penstock::server::checkpoint
