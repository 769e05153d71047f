// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/control/tensor_list_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/ops/elements.h"

namespace weft::ops {
namespace {

// From the last to the first.
std::vector<const TensorList*> Cells(const TensorList& list) {
  std::vector<const TensorList*> cells;
  for (const TensorList* at = &list; at->length() > 0; at = at->rest().get()) cells.push_back(at);
  return cells;
}

Ref<TensorList> EmptyLike(const TensorList& list) {
  return MakeRef<TensorList>(list.dtype(), list.element_shape(), list.max_length());
}

int NestingOf(const Tensor& element) {
  if (element.dtype() != DType::kVariant) return 0;
  const StatusOr<Ref<TensorList>> inner = TensorListOf(element);
  return inner.ok() ? (*inner)->nesting() : 0;
}

// Of lists in lists too. Handles have no zero: whoever differentiates never reads these.
StatusOr<Tensor> ZeroOf(const Tensor& element) {
  if (element.dtype() == DType::kVariant) {
    const StatusOr<Ref<TensorList>> inner = TensorListOf(element);
    if (!inner.ok()) return element;
    WEFT_ASSIGN_OR_RETURN(Ref<TensorList> zeros, ZerosLike(**inner));
    return TensorOf(std::move(zeros));
  }
  if (element.dtype() == DType::kResource) return element;
  return Tensor::Zeros(element.dtype(), element.shape());
}

StatusOr<Tensor> SumOf(const Tensor& a, const Tensor& b, AddTensors add) {
  if (a.dtype() != DType::kVariant) return add(a, b);
  WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> of_a, TensorListOf(a));
  WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> of_b, TensorListOf(b));
  WEFT_ASSIGN_OR_RETURN(Ref<TensorList> sum, AddLists(*of_a, *of_b, add));
  return TensorOf(std::move(sum));
}

}  // namespace

TensorList::TensorList(DType dtype, PartialShape element_shape, int64_t max_length)
    : dtype_(dtype),
      element_shape_(std::move(element_shape)),
      max_length_(max_length),
      length_(0),
      nesting_(1) {}

TensorList::TensorList(Ref<TensorList> rest, Tensor last)
    : dtype_(rest->dtype_),
      element_shape_(rest->element_shape_),
      max_length_(rest->max_length_),
      length_(rest->length_ + 1),
      nesting_(std::max(rest->nesting_, 1 + NestingOf(last))),
      rest_(std::move(rest)),
      last_(std::move(last)) {}

// Without recursion: lists are as long as loops run.
TensorList::~TensorList() {
  Ref<TensorList> rest = std::move(rest_);
  while (rest && rest->HasOneRef()) {
    Ref<TensorList> next = std::move(rest->rest_);
    rest = std::move(next);
  }
}

StatusOr<Ref<TensorList>> TensorListOf(const Tensor& tensor) {
  if (!tensor.shape().IsScalar()) {
    return InvalidArgument("Input handle must be a scalar, got shape ", tensor.shape().ToString());
  }
  const Ref<VariantValue>& value = tensor.data<Variant>()->value;
  auto* list = dynamic_cast<TensorList*>(value.get());
  if (list != nullptr) return Ref<TensorList>(list);
  return InvalidArgument("Input handle is not a list. Saw: '",
                         value ? value->type_name() : absl::string_view("nothing"), "'");
}

bool HoldsNothing(const Tensor& tensor) {
  return tensor.shape().IsScalar() && !tensor.data<Variant>()->value;
}

Tensor TensorOf(Ref<TensorList> list) { return Tensor::Scalar(Variant{std::move(list)}); }

StatusOr<Ref<TensorList>> ZerosLike(const TensorList& list) {
  const std::vector<const TensorList*> cells = Cells(list);
  Ref<TensorList> zeros = EmptyLike(list);
  for (auto cell = cells.rbegin(); cell != cells.rend(); ++cell) {
    const Tensor& element = (*cell)->last();
    WEFT_ASSIGN_OR_RETURN(Tensor zero, ZeroOf(element));
    zeros = MakeRef<TensorList>(std::move(zeros), std::move(zero));
  }
  return zeros;
}

StatusOr<Ref<TensorList>> AddLists(const TensorList& a, const TensorList& b, AddTensors add) {
  if (a.dtype() != b.dtype() || a.length() != b.length()) {
    return InvalidArgument("Trying to add two lists of tensors that differ: ", a.length(), " of ",
                           DTypeName(a.dtype()), " and ", b.length(), " of ", DTypeName(b.dtype()));
  }
  const std::vector<const TensorList*> of_a = Cells(a);
  const std::vector<const TensorList*> of_b = Cells(b);
  Ref<TensorList> sums = EmptyLike(a);
  for (size_t i = of_a.size(); i-- > 0;) {
    WEFT_ASSIGN_OR_RETURN(Tensor sum, SumOf(of_a[i]->last(), of_b[i]->last(), add));
    sums = MakeRef<TensorList>(std::move(sums), std::move(sum));
  }
  return sums;
}

}  // namespace weft::ops
