// SPDX-License-Identifier: Apache-2.0
// Shapes: fully known (Shape) and with unknown parts (PartialShape).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#include "base/status.h"

namespace weft {

using Dims = absl::InlinedVector<int64_t, 4>;
inline constexpr int kMaxRank = 254;

// Dimensions, each >= 0, whose product fits int64. The maker functions check both; the constructor
// from a list is for sizes that are known to be sane.
class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) { Count(); }
  // InvalidArgument for a negative size, a rank over 254 or a product that overflows int64.
  static StatusOr<Shape> Make(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }
  bool IsScalar() const { return dims_.empty(); }
  bool IsVector() const { return dims_.size() == 1; }
  bool IsMatrix() const { return dims_.size() == 2; }

  // Unchecked edits: the caller knows that sizes stay in range (they come from other shapes).
  void AddDim(int64_t size);
  void SetDim(int i, int64_t size);
  void RemoveDim(int i);
  void InsertDim(int i, int64_t size);

  bool operator==(const Shape& other) const {
    // Not dims_ == other.dims_: of the few there are, calling memcmp costs more than they do.
    if (num_elements_ != other.num_elements_ || dims_.size() != other.dims_.size()) return false;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }
  std::string ToString() const;  // "[2,3]", "[]"

 private:
  void Count();
  Dims dims_;
  int64_t num_elements_ = 1;
};

// A shape of unknown rank, or with unknown sizes (-1).
class PartialShape {
 public:
  PartialShape() = default;  // unknown rank
  PartialShape(std::initializer_list<int64_t> dims) : known_rank_(true), dims_(dims) {}
  PartialShape(const Shape& shape);  // NOLINT(google-explicit-constructor): a Shape is one
  static StatusOr<PartialShape> Make(absl::Span<const int64_t> dims);  // -1 = unknown
  static PartialShape UnknownOfRank(int rank);

  bool known_rank() const { return known_rank_; }
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t dim(int i) const { return known_rank_ ? dims_[i] : -1; }
  absl::Span<const int64_t> dims() const { return dims_; }
  void AddDim(int64_t size) { dims_.push_back(size); }
  void SetDim(int i, int64_t size) { dims_[i] = size; }
  bool IsFullyDefined() const;
  // -1 unless fully defined.
  int64_t num_elements() const;
  // The Shape, if fully defined; else InvalidArgument.
  StatusOr<Shape> ToShape() const;
  // True if some Shape fits both.
  bool IsCompatibleWith(const PartialShape& other) const;
  // What both say together. InvalidArgument where they contradict.
  StatusOr<PartialShape> MergeWith(const PartialShape& other) const;
  bool operator==(const PartialShape&) const = default;
  std::string ToString() const;  // "[2,?]", "<unknown>"

 private:
  bool known_rank_ = false;
  Dims dims_;
};

// a * b, or InvalidArgument when it does not fit int64 or a factor is negative.
StatusOr<int64_t> MultiplySizes(int64_t a, int64_t b);
// The shape both broadcast to by NumPy's rules; InvalidArgument "Incompatible shapes: [2] vs. [3]".
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace weft
