#include "server/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "nlohmann/json.hpp"

namespace penstock::server::checkpoint {
namespace {

constexpr absl::string_view kMetadata = "__metadata__";
constexpr size_t kMaxDimensions = 32;

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors header: ", what));
}

// Builds the header while the JSON is read, so that nothing but the tensors
// themselves takes memory, and duplicate keys are seen. One level of the format
// is one state; what does not fit ends the parse with `error_`.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Takes the result; valid once sax_parse returned true.
  std::vector<SafetensorsTensor> TakeTensors() { return std::move(tensors_); }
  std::map<std::string, std::string> TakeMetadata() {
    return std::move(metadata_);
  }
  absl::Status error() const { return error_; }

  bool start_object(size_t) override {
    switch (state_) {
      case State::kStart:
        return Go(State::kTop);
      case State::kTopValue:
        if (key_ == kMetadata) return Go(State::kMetadata);
        tensors_.push_back({.name = key_, .begin = -1, .end = -1});
        have_shape_ = false;
        return Go(State::kTensor);
      default:
        return Unexpected("an object");
    }
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::kTop:
        if (!names_.insert(name).second) {
          return Fail(
              absl::StrCat(common::text::Quoted(name), " appears twice"));
        }
        key_ = name;
        return Go(State::kTopValue);
      case State::kMetadata:
        if (metadata_.contains(name)) {
          return Fail(absl::StrCat("metadata ", common::text::Quoted(name),
                                   " appears twice"));
        }
        field_ = name;
        return Go(State::kMetadataValue);
      case State::kTensor:
        field_ = name;
        return TensorField();
      default:
        return Unexpected("a key");
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::kTop:
        return Go(State::kEnd);
      case State::kMetadata:
        return Go(State::kTop);
      case State::kTensor:
        return FinishTensor();
      default:
        return Unexpected("the end of an object");
    }
  }

  bool start_array(size_t) override {
    switch (state_) {
      case State::kShapeValue:
        return Go(State::kShape);
      case State::kOffsetsValue:
        return Go(State::kOffsets);
      default:
        return Unexpected("an array");
    }
  }

  bool end_array() override {
    switch (state_) {
      case State::kShape:
        return Go(State::kTensor);
      case State::kOffsets:
        if (tensors_.back().end < 0) return Fail(Where("needs two offsets"));
        return Go(State::kTensor);
      default:
        return Unexpected("the end of an array");
    }
  }

  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return Fail(Where("has a number that is too large"));
    }
    SafetensorsTensor* const tensor =
        tensors_.empty() ? nullptr : &tensors_.back();
    switch (state_) {
      case State::kShape:
        if (tensor->shape.size() >= kMaxDimensions) {
          return Fail(Where("has too many dimensions"));
        }
        tensor->shape.push_back(static_cast<int64_t>(value));
        return true;
      case State::kOffsets:
        if (tensor->begin < 0) {
          tensor->begin = static_cast<int64_t>(value);
          return true;
        }
        if (tensor->end >= 0) return Fail(Where("needs two offsets"));
        tensor->end = static_cast<int64_t>(value);
        return true;
      default:
        return Unexpected("a number");
    }
  }

  bool string(std::string& value) override {
    switch (state_) {
      case State::kMetadataValue:
        metadata_[field_] = value;
        return Go(State::kMetadata);
      case State::kDtypeValue:
        if (SafetensorsElementBytes(value) == 0) {
          return Fail(Where(absl::StrCat("has the unknown dtype ",
                                         common::text::Quoted(value))));
        }
        tensors_.back().dtype = value;
        return Go(State::kTensor);
      default:
        return Unexpected("a string");
    }
  }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(int64_t) override {
    return Unexpected("a negative number");
  }
  bool number_float(double, const std::string&) override {
    return Unexpected("a fraction");
  }
  bool binary(nlohmann::json::binary_t&) override {
    return Unexpected("binary data");
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

 private:
  enum class State {
    kStart,
    kTop,
    kTopValue,
    kMetadata,
    kMetadataValue,
    kTensor,
    kDtypeValue,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kEnd
  };

  bool Go(State next) {
    state_ = next;
    return true;
  }
  bool Fail(absl::string_view what) {
    if (error_.ok()) error_ = Invalid(what);
    return false;
  }
  std::string Where(absl::string_view what) const {
    return absl::StrCat("tensor ", common::text::Quoted(key_), " ", what);
  }
  bool Unexpected(absl::string_view what) {
    return Fail(absl::StrCat("unexpected ", what, key_.empty() ? "" : " at ",
                             key_.empty() ? "" : common::text::Quoted(key_)));
  }

  bool TensorField() {
    const SafetensorsTensor& tensor = tensors_.back();
    const auto once = [&](bool seen, State next) {
      return seen ? Fail(Where(absl::StrCat("has ", field_, " twice")))
                  : Go(next);
    };
    if (field_ == "dtype")
      return once(!tensor.dtype.empty(), State::kDtypeValue);
    if (field_ == "data_offsets") {
      return once(tensor.begin >= 0, State::kOffsetsValue);
    }
    if (field_ == "shape") {
      const bool seen = std::exchange(have_shape_, true);
      return once(seen, State::kShapeValue);
    }
    return Fail(Where(
        absl::StrCat("has the unknown key ", common::text::Quoted(field_))));
  }

  bool FinishTensor() {
    const SafetensorsTensor& tensor = tensors_.back();
    if (tensor.dtype.empty() || !have_shape_ || tensor.end < 0) {
      return Fail(Where("needs dtype, shape and data_offsets"));
    }
    return Go(State::kTop);
  }

  State state_ = State::kStart;
  std::string key_, field_;
  bool have_shape_ = false;
  std::set<std::string> names_;
  std::vector<SafetensorsTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  absl::Status error_;
};

// Size in bytes of dtype and shape, or -1 on overflow.
int64_t SizeOf(const SafetensorsTensor& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) !=
      tensor.shape.end()) {
    return 0;
  }
  int64_t bytes = SafetensorsElementBytes(tensor.dtype);
  for (const int64_t dim : tensor.shape) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  }
  return bytes;
}

absl::Status CheckOffsets(const std::vector<SafetensorsTensor>& tensors,
                          int64_t data_bytes) {
  int64_t next = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const std::string where =
        absl::StrCat("tensor ", common::text::Quoted(tensor.name),
                     ", offsets [", tensor.begin, ", ", tensor.end, ")");
    if (tensor.begin > tensor.end) {
      return Invalid(absl::StrCat(where, ": ends before it begins"));
    }
    if (tensor.end > data_bytes) {
      return Invalid(absl::StrCat(
          where, ": the file has only ", data_bytes,
          " bytes of data; it is truncated or its header is wrong"));
    }
    if (tensor.begin < next) {
      return Invalid(absl::StrCat(
          where, ": overlaps the tensor before it, which ends at ", next));
    }
    if (tensor.begin > next) {
      return Invalid(absl::StrCat(where, ": leaves a gap after ", next));
    }
    const int64_t bytes = SizeOf(tensor);
    if (tensor.end - tensor.begin != bytes) {
      return Invalid(absl::StrCat(where, ": ", tensor.end - tensor.begin,
                                  " bytes do not fit ", tensor.dtype, " ",
                                  tensor.ShapeText()));
    }
    next = tensor.end;
  }
  if (next != data_bytes) {
    return Invalid(absl::StrCat("the last tensor ends at ", next, " of ",
                                data_bytes, " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SafetensorsTensor::elements() const {
  const int64_t element = SafetensorsElementBytes(dtype);
  return element == 0 ? 0 : (end - begin) / element;
}

std::string SafetensorsTensor::ShapeText() const {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

const SafetensorsTensor* SafetensorsHeader::Find(absl::string_view name) const {
  const auto found =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [this](int32_t place, absl::string_view sought) {
                         return absl::string_view(tensors[place].name) < sought;
                       });
  if (found == by_name.end() || tensors[*found].name != name) return nullptr;
  return &tensors[*found];
}

int64_t SafetensorsElementBytes(absl::string_view dtype) {
  static constexpr struct {
    absl::string_view name;
    int64_t bytes;
  } kTypes[] = {{"BOOL", 1},    {"U8", 1},      {"I8", 1},  {"F8_E4M3", 1},
                {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"U16", 2}, {"I16", 2},
                {"F16", 2},     {"BF16", 2},    {"U32", 4}, {"I32", 4},
                {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8},
                {"C64", 8}};
  for (const auto& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes) {
  HeaderReader reader;
  const bool ok = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  if (!ok) {
    RETURN_IF_ERROR(reader.error());
    return Invalid("not JSON");
  }
  SafetensorsHeader header{.tensors = reader.TakeTensors(),
                           .metadata = reader.TakeMetadata()};
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  RETURN_IF_ERROR(CheckOffsets(header.tensors, data_bytes));
  header.by_name.resize(header.tensors.size());
  std::iota(header.by_name.begin(), header.by_name.end(), 0);
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&header](int32_t a, int32_t b) {
              return header.tensors[a].name < header.tensors[b].name;
            });
  return header;
}

absl::StatusOr<int64_t> ParseSafetensorsLength(absl::string_view first_bytes,
                                               int64_t file_bytes) {
  if (file_bytes < kLengthBytes ||
      static_cast<int64_t>(first_bytes.size()) < kLengthBytes) {
    return Invalid(absl::StrCat("a file of ", file_bytes,
                                " bytes cannot be a safetensors file"));
  }
  uint64_t length = 0;
  for (int i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<uint8_t>(first_bytes[i])} << (8 * i);
  }
  if (length > uint64_t{kMaxHeaderBytes}) {
    return Invalid(
        absl::StrCat("says to be ", length, " bytes long; the format allows ",
                     kMaxHeaderBytes, ": this is no safetensors file"));
  }
  if (static_cast<int64_t>(length) > file_bytes - kLengthBytes) {
    return Invalid(absl::StrCat(
        "says to be ", length, " bytes long, the file has ",
        file_bytes - kLengthBytes, " after the length: it is truncated"));
  }
  return static_cast<int64_t>(length);
}

}  // namespace penstock::server::checkpoint
