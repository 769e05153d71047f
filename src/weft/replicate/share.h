// SPDX-License-Identifier: Apache-2.0
// What a worker's value of a tensor is to the value that one device would compute of the whole
// batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/tensor/shape.h"

namespace weft::replicate {

// One element of a small tensor of integers (sizes, axes, permutations). On each of K workers it is
// the whole step's element times K^power: a batch size has power -1.
struct Element {
  static constexpr int64_t kUnknown = INT64_MIN;
  int64_t value = kUnknown;  // the whole step's
  int power = 0;
  bool operator==(const Element&) const = default;
  bool Is(int64_t wanted) const { return power == 0 && value == wanted; }
  bool IsKnown() const { return power == 0 && value != kUnknown; }
};
using Elements = std::vector<Element>;

struct Share {
  enum class Kind : uint8_t {
    kWhole,  // computed once, and sent to the workers that need it
    kEqual,  // computed by each worker, the same everywhere
    kSlice,  // each worker has its rows of dimension `dim`
    kPart,   // the whole is the sum of the workers' values
  };
  Kind kind = Kind::kWhole;
  int dim = 0;
  // A worker's values (slices, equals), or their sum over the workers (parts), are the whole step's
  // times K^scale. Of equal tensors with elements those say it instead.
  int scale = 0;
  // All elements are zero, so that any scale is right.
  bool zero = false;
  // A whole that is computed of what workers gave: they would have to wait for it in mid-step.
  bool late = false;
  // A slice that is cut from a whole: what is fed, random numbers.
  bool cut = false;
  // Of integer scalars and vectors: what is known of them; of lists that of each of their tensors.
  std::optional<Elements> elements;
  // A list or an array of tensors, and the rest is said of each of them; one that is equal and zero
  // holds none yet.
  bool is_list = false;
  // What a rule knows of the shape, in the whole step, beyond what is inferred; of lists that of
  // their tensors.
  std::optional<PartialShape> shape;

  bool is_whole() const { return kind == Kind::kWhole; }
  bool is_equal() const { return kind == Kind::kEqual; }
  bool is_slice() const { return kind == Kind::kSlice; }
  bool is_part() const { return kind == Kind::kPart; }
  // The same on each worker.
  bool is_same() const { return is_whole() || is_equal(); }

  static Share Whole() { return {}; }
  static Share Equal(int scale = 0) { return {.kind = Kind::kEqual, .scale = scale}; }
  static Share Sizes(Elements elements) {
    return {.kind = Kind::kEqual, .elements = std::move(elements)};
  }
  static Share Slice(int dim, int scale = 0) {
    return {.kind = Kind::kSlice, .dim = dim, .scale = scale};
  }
  static Share Part(int scale) { return {.kind = Kind::kPart, .scale = scale}; }

  bool operator==(const Share&) const = default;

  // The power of K that all its elements have on a worker; none if they differ, or for slices,
  // parts and lists.
  std::optional<int> UniformPower() const;
  std::string ToString() const;  // "rows of dimension 0", "a part of a sum"

  // As the output of a node that each worker computes.
  Share OnWorkers() const;
};

// What two values that take turns are: results of branches, a variable of a loop. None if they have
// nothing in common that a worker's value could be.
std::optional<Share> Join(const Share& a, const Share& b);

}  // namespace weft::replicate
