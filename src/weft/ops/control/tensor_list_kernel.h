// SPDX-License-Identifier: Apache-2.0
// Lists of tensors: what loops keep of each iteration for their gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

#include "base/ref.h"
#include "base/status.h"
#include "weft/kernel/kernel_context.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft::ops {

// An immutable list: a row of elements and others pushed behind them one by one. A longer list
// shares what it was made of, so that pushing and popping cost the same whatever the length.
// Elements of the row may be missing (not initialized): those of a reserved list that nobody set.
class TensorList final : public VariantValue {
 public:
  using Elements = std::vector<Tensor>;

  // No elements. `max_length` is negative if any number may come.
  TensorList(DType dtype, PartialShape element_shape, int64_t max_length);
  // `elements` in a row; what else is said of the list is taken from `like`.
  TensorList(const TensorList& like, Elements elements);
  // `rest` with `last` behind it.
  TensorList(Ref<TensorList> rest, Tensor last);
  ~TensorList() override;

  static constexpr absl::string_view kTypeName = "tensorflow::TensorList";
  absl::string_view type_name() const override { return kTypeName; }
  StatusOr<std::string> Encode() const override;
  std::vector<Tensor> EncodeTensors() const override;
  DType dtype() const { return dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  int64_t max_length() const { return max_length_; }
  int64_t length() const { return length_; }
  // How many lists lie in each other: 1 if no element is a list.
  int nesting() const { return nesting_; }

  // Element `i` of a list that is longer.
  const Tensor& at(int64_t i) const;
  const Tensor& last() const { return at(length_ - 1); }
  // The list without its last element; it must have one.
  Ref<TensorList> WithoutLast() const;
  // All of them, from the first to the last.
  Elements ToElements() const;
  // Puts `element` at `i`. Only for a list that no other can see; false if others share the row.
  bool SetInPlace(int64_t i, const Tensor& element);

 private:
  // The first `length` of the row of `like`.
  TensorList(const TensorList& like, int64_t length);

  const DType dtype_;
  const PartialShape element_shape_;
  const int64_t max_length_;
  const int64_t length_;
  int nesting_;
  // Shared by the shorter lists that popping makes.
  std::shared_ptr<Elements> row_;
  // Where an element was pushed: what it stands behind, and itself.
  Ref<TensorList> rest_;
  const Tensor last_;
};

// Lists that lie in each other are walked one in the other.
inline constexpr int kMaxNestedLists = 64;

// A list from its bytes and the elements that are there. InvalidArgument for malformed bytes.
StatusOr<Ref<TensorList>> TensorListFromBytes(absl::string_view bytes,
                                              const std::vector<Tensor>& there);
// The list in a scalar variant, perhaps one that came from elsewhere; InvalidArgument if it holds
// something else.
StatusOr<Ref<TensorList>> TensorListOf(const Tensor& tensor);
StatusOr<Ref<TensorList>> TensorListOf(const Variant& variant);
// The same of an input, whose elements must have `dtype`.
StatusOr<Ref<TensorList>> TensorListOfInput(const KernelContext& c, int i, DType dtype);
Tensor TensorOf(Ref<TensorList> list);
// True for a scalar variant without a value, as FakeParam gives.
bool HoldsNothing(const Tensor& tensor);

// A shape from a tensor: -1 as a scalar says nothing; a vector says the sizes, -1 for what is not
// known.
StatusOr<PartialShape> ElementShapeOf(const Tensor& tensor);
// InvalidArgument unless an element of the list may have this dtype and shape, and lists in lists
// do not lie too deep.
Status CheckElement(const TensorList& list, const Tensor& element);
// The one shape that `wanted`, the list and its elements tell. InvalidArgument where they
// contradict each other or, for lists with elements missing and empty ones, do not tell all sizes.
StatusOr<Shape> CommonShape(const TensorList& list, const PartialShape& wanted);
// Zeros for an element that nobody set.
StatusOr<Tensor> MissingElement(DType dtype, const Shape& shape);

// Zeros in the shape of each element.
StatusOr<Ref<TensorList>> ZerosLike(const TensorList& list);
// Sums of the elements at the same place; InvalidArgument if lengths or shapes differ.
using AddTensors = absl::FunctionRef<StatusOr<Tensor>(const Tensor& a, const Tensor& b)>;
StatusOr<Ref<TensorList>> AddLists(const TensorList& a, const TensorList& b, AddTensors add);

}  // namespace weft::ops
