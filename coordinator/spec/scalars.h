// The words of a job file that stand for numbers, sizes and times, and how the
// same values are written back so that reading them again gives the same bits.
//
// Parsers take an unquoted scalar's text; nullopt: it is no such value.
#ifndef PENSTOCK_COORDINATOR_SPEC_SCALARS_H_
#define PENSTOCK_COORDINATOR_SPEC_SCALARS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock::coordinator::spec {

// A whole number: `12`, `-3`, or in another form (`1e4`, `3.0`) if whole and
// exact.
std::optional<int64_t> ParseWhole(absl::string_view text);

// A finite number: `0.1`, `1e-3`, `1.0e-3`. No inf, nan, hexadecimal, `1_000`.
std::optional<double> ParseNumber(absl::string_view text);

// Whether the stages, which compute in f32, can: 0, or a normal number of f32
// (the others are flushed to 0, or infinite); and why not, in words.
bool FitsF32(double value);
inline constexpr char kNotInF32[] =
    "stages compute in f32, which holds 1.18e-38 to 3.40e38";

// Bytes: a whole number, or a number with KiB, MiB or GiB if whole bytes.
std::optional<int64_t> ParseByteSize(absl::string_view text);

// `5ms`, `1.5s`, `2h`, `1h30m`; units ns us ms s m h; `0` needs none. >= 0.
std::optional<absl::Duration> ParseTime(absl::string_view text);

// A share in millionths: `5%`, `0.25%`; 0 < share < 100 %, four decimals.
std::optional<int64_t> ParseShare(absl::string_view text);

// The inverses. FormatNumber is the shortest text that reads back exactly.
std::string FormatNumber(double value);
std::string FormatByteSize(int64_t bytes);
std::string FormatTime(absl::Duration time);
std::string FormatShare(int64_t millionths);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_SCALARS_H_
