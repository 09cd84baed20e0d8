#include "coordinator/schedule/generators.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/schedule/gpipe.h"
#include "coordinator/schedule/naive.h"
#include "coordinator/schedule/one_forward_one_backward.h"

namespace penstock::coordinator::schedule {
namespace {

struct Generator {
  absl::string_view name;
  absl::StatusOr<Schedule> (*generate)(const Shape& shape);
};

constexpr Generator kGenerators[] = {
    {"naive", GenerateNaive},
    {"gpipe", GenerateGPipe},
    {"1f1b", GenerateOneForwardOneBackward},
};

// Of the schedules that job files may name.
constexpr absl::string_view kNotBuiltYet[] = {
    "interleaved", "looped-bfs", "zb-h1", "zb-h2",      "zb1p-interleaved",
    "zb-v",        "v-half",     "v-min", "dualpipe-v", "auto"};

}  // namespace

std::vector<absl::string_view> GeneratorNames() {
  std::vector<absl::string_view> names;
  for (const Generator& generator : kGenerators) {
    names.push_back(generator.name);
  }
  return names;
}

absl::StatusOr<Schedule> Generate(absl::string_view name, const Shape& shape) {
  for (const Generator& generator : kGenerators) {
    if (generator.name == name) return generator.generate(shape);
  }
  const bool later = std::find(std::begin(kNotBuiltYet), std::end(kNotBuiltYet),
                               name) != std::end(kNotBuiltYet);
  return absl::InvalidArgumentError(absl::StrCat(
      later ? "not built yet: schedule \"" : "there is no schedule \"", name,
      "\"; there are ", absl::StrJoin(GeneratorNames(), ", ")));
}

}  // namespace penstock::coordinator::schedule
