// What a key's value may be: a type says what it expects and reads a scalar.
// The schema table is built from these.
#ifndef PENSTOCK_COORDINATOR_SPEC_VALUE_TYPES_H_
#define PENSTOCK_COORDINATOR_SPEC_VALUE_TYPES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/foreign_keys.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

template <typename T>
struct ValueType {
  std::string expected;  // "a whole number of at least 1"
  // nullopt: not of this type.
  std::function<std::optional<T>(const YamlNode&)> read;
  // What to do about a value that was not read; "" or empty: nothing known.
  std::function<std::string(const YamlNode&)> hint;
};

// "expected X, got Y; hint".
template <typename T>
std::string WrongValue(const ValueType<T>& type, const YamlNode& node) {
  std::string text =
      absl::StrCat("expected ", type.expected, ", got ", Describe(node));
  if (type.hint) {
    const std::string hint = type.hint(node);
    if (!hint.empty()) absl::StrAppend(&text, "; ", hint);
  }
  return text;
}

// min <= value <= max.
ValueType<int64_t> Whole(int64_t min, int64_t max);

// A number that f32 holds, for which `accepts` holds; `expected` says so in
// words.
ValueType<double> Number(absl::string_view expected, bool (*accepts)(double));
ValueType<double> AnyPositive();  // "a number above 0"
ValueType<double> NotNegative();  // "a number of at least 0"
ValueType<double> AtLeastOne();   // "a number of at least 1"
ValueType<double> BelowOne();     // [0, 1)
ValueType<double> UpToOne();      // [0, 1]

ValueType<bool> Flag();  // true | false, not yes, on or 1
// Not empty, no control characters. A plain scalar counts as it is written.
ValueType<std::string> Text(absl::string_view expected);
ValueType<int64_t> ByteSize();
ValueType<absl::Duration> Time();

// One of the words of an enumeration's table.
template <typename Row, size_t N>
ValueType<EnumOf<Row>> WordOf(const Row (&names)[N]) {
  using E = EnumOf<Row>;
  std::vector<absl::string_view> words;
  for (const Row& entry : names) words.push_back(entry.name);
  return {.expected = absl::StrCat("one of ", absl::StrJoin(words, " ")),
          .read = [&names](const YamlNode& node) -> std::optional<E> {
            if (node.kind != YamlNode::Kind::kScalar) return std::nullopt;
            return ValueOf(names, node.scalar);
          },
          .hint = [words](const YamlNode& node) -> std::string {
            const absl::string_view near = Nearest(node.scalar, words);
            return near.empty() ? "" : absl::StrCat("did you mean ", near, "?");
          }};
}

// An unquoted scalar equal to `word`.
bool IsWord(const YamlNode& node, absl::string_view word);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_VALUE_TYPES_H_
