// The table of every key of the job file: its path and the reader of its value.
// A key with others below it is a section; it has a row of its own only where
// it may also be a single word (`evaluate: none`).
#ifndef PENSTOCK_COORDINATOR_SPEC_KEY_TABLE_H_
#define PENSTOCK_COORDINATOR_SPEC_KEY_TABLE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/spec/readers.h"

namespace penstock::coordinator::spec {

struct KeyRow {
  absl::string_view path;
  Reader read;
};

// In the order of docs and of job.yaml; the keys of a section are neighbours.
const std::vector<KeyRow>& KeyTable();

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_KEY_TABLE_H_
