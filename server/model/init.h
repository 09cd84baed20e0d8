// Initial weights without a checkpoint (docs/numerics.md): a function of
// (seed, canonical name, shape) alone, so the same for every K.
//
// Element e of a normal tensor: Philox4x32-10 with
//   key      the first 8 bytes (little-endian) of
//            SHA-256(seed as 8 little-endian bytes, name)
//   counter  {b, b >> 32, 0x54494e49, 0}, b = e / 2
// whose words x give u1 = (x0 * 2^32 + x1 + 0.5) / 2^64, u2 likewise of x2, x3;
// element 2b is std * sqrt(-2 ln u1) cos(2 pi u2), 2b + 1 the sine (Box and
// Muller 1958), in f64, rounded to f32. Not std::normal_distribution, whose
// values are the library's choice.
#ifndef PENSTOCK_SERVER_MODEL_INIT_H_
#define PENSTOCK_SERVER_MODEL_INIT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/model/parameter_spec.h"

namespace penstock::server::model {

// REQUIRES: values.size() is the number of elements of spec.shape.
void Initialise(uint64_t seed, const ParameterSpec& spec,
                absl::Span<float> values);

// Elements [first, first + values.size()) of these. REQUIRES: `first` is even
// and all are within spec.shape.
void InitialisePart(uint64_t seed, const ParameterSpec& spec, int64_t first,
                    absl::Span<float> values);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_INIT_H_
