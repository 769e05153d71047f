// SPDX-License-Identifier: Apache-2.0
// Lists of tensors: what loops keep of each iteration for their gradients.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

#include "base/ref.h"
#include "base/status.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft::ops {

// An immutable list. A longer one shares what it was made of, so that pushing and popping cost the
// same whatever the length.
class TensorList final : public VariantValue {
 public:
  // No elements. `max_length` is negative if any number may come.
  TensorList(DType dtype, PartialShape element_shape, int64_t max_length);
  // `rest` with `last` behind it.
  TensorList(Ref<TensorList> rest, Tensor last);
  ~TensorList() override;

  absl::string_view type_name() const override { return "tensorflow::TensorList"; }
  DType dtype() const { return dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  int64_t max_length() const { return max_length_; }
  int64_t length() const { return length_; }
  // How many lists lie in each other: 1 if no element is a list.
  int nesting() const { return nesting_; }
  // Of a list that has elements: the last one, and the list without it.
  const Tensor& last() const { return last_; }
  const Ref<TensorList>& rest() const { return rest_; }

 private:
  const DType dtype_;
  const PartialShape element_shape_;
  const int64_t max_length_;
  const int64_t length_;
  const int nesting_;
  Ref<TensorList> rest_;
  const Tensor last_;
};

// Lists that lie in each other are walked one in the other.
inline constexpr int kMaxNestedLists = 64;

// The list in a scalar variant; InvalidArgument if it holds something else.
StatusOr<Ref<TensorList>> TensorListOf(const Tensor& tensor);
Tensor TensorOf(Ref<TensorList> list);
// True for a scalar variant without a value, as FakeParam gives.
bool HoldsNothing(const Tensor& tensor);

// Zeros in the shape of each element.
StatusOr<Ref<TensorList>> ZerosLike(const TensorList& list);
// Sums of the elements at the same place; InvalidArgument if lengths or shapes differ.
using AddTensors = absl::FunctionRef<StatusOr<Tensor>(const Tensor& a, const Tensor& b)>;
StatusOr<Ref<TensorList>> AddLists(const TensorList& a, const TensorList& b, AddTensors add);

}  // namespace weft::ops
