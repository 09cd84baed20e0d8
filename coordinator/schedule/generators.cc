#include "coordinator/schedule/generators.h"

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
  return absl::InvalidArgumentError(
      absl::StrCat("there is no schedule \"", name, "\"; there are ",
                   absl::StrJoin(GeneratorNames(), ", ")));
}

}  // namespace penstock::coordinator::schedule
