#include "server/data/json_fault.h"

#include <algorithm>
#include <string>

#include "nlohmann/json.hpp"

namespace penstock::server::data {
namespace {

// From "[json.exception...] parse error at line 1, column 7: syntax error while
// parsing value - WHY; last read: 'as long as a string is'".
std::string Why(const nlohmann::detail::exception& error) {
  absl::string_view why = error.what();
  const size_t dash = why.find(" - ");
  if (dash != absl::string_view::npos) why.remove_prefix(dash + 3);
  return std::string(why.substr(0, why.find("; last read: ")).substr(0, 128));
}

// Takes no value and keeps the place of the error.
class FaultReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::optional<JsonFault>& fault() const { return fault_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // JSON, but a number beyond f64.
    constexpr int kOutOfRange = 406;
    // `position` counts the bytes that were read, the wrong one too.
    if (error.id != kOutOfRange) {
      fault_ = {.at = static_cast<int64_t>(position) - 1, .why = Why(error)};
    }
    return false;
  }

 private:
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> FindJsonFault(absl::string_view line) {
  FaultReader reader;
  nlohmann::json::sax_parse(line.begin(), line.end(), &reader);
  std::optional<JsonFault> fault = reader.fault();
  if (fault.has_value()) {
    fault->at =
        std::clamp<int64_t>(fault->at, 0, static_cast<int64_t>(line.size()));
  }
  return fault;
}

}  // namespace penstock::server::data
