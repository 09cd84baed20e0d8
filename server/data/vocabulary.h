// The check that a model has an embedding row for every id of its data.
#ifndef PENSTOCK_SERVER_DATA_VOCABULARY_H_
#define PENSTOCK_SERVER_DATA_VOCABULARY_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::server::data {

// Above every id: the vocabulary is not known yet, nothing is checked.
inline constexpr int64_t kNoVocabulary = std::numeric_limits<int64_t>::max();

// InvalidArgument "vocabulary too small for the data: WHERE is token id ID,
// but model.vocab is VOCAB (ids 0 to VOCAB - 1)".
absl::Status TooSmallVocabulary(absl::string_view where, int64_t id,
                                int64_t vocab);

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_VOCABULARY_H_
