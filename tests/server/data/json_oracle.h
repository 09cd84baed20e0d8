// Compares JsonLineParser with nlohmann-json, for tests and the fuzz target.
#ifndef PENSTOCK_TESTS_SERVER_DATA_JSON_ORACLE_H_
#define PENSTOCK_TESTS_SERVER_DATA_JSON_ORACLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace penstock::server::data {

struct OracleVerdict {
  bool accepted = false;     // By JsonLineParser.
  std::string disagreement;  // Empty: the two agree.
};

// REQUIRES: `field` is none of the token keys.
OracleVerdict CompareWithOracle(absl::string_view line,
                                absl::string_view field);

}  // namespace penstock::server::data

#endif  // PENSTOCK_TESTS_SERVER_DATA_JSON_ORACLE_H_
