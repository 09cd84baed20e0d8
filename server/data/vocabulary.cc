#include "server/data/vocabulary.h"

#include "absl/strings/str_cat.h"

namespace penstock::server::data {

absl::Status TooSmallVocabulary(absl::string_view where, int64_t id,
                                int64_t vocab) {
  return absl::InvalidArgumentError(absl::StrCat(
      "vocabulary too small for the data: ", where, " is token id ", id,
      ", but model.vocab is ", vocab, " (ids 0 to ", vocab - 1, ")"));
}

}  // namespace penstock::server::data
