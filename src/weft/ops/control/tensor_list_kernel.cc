// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/control/tensor_list_kernel.h"

#include <algorithm>
#include <utility>

#include "proto/tensorflow/tensor_shape.pb.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/storage/coding.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::ops {
namespace {

int NestingOf(const Tensor& element) {
  if (element.dtype() != DType::kVariant || !element.shape().IsScalar()) return 0;
  const StatusOr<Ref<TensorList>> inner = TensorListOf(element);
  return inner.ok() ? (*inner)->nesting() : 0;
}

// Of lists in lists too. Handles have no zero: whoever differentiates never reads these.
StatusOr<Tensor> ZeroOf(const Tensor& element) {
  if (!element.IsInitialized()) return element;
  if (element.dtype() == DType::kVariant) {
    const StatusOr<Ref<TensorList>> inner = TensorListOf(element);
    if (!inner.ok()) return element;
    WEFT_ASSIGN_OR_RETURN(Ref<TensorList> zeros, ZerosLike(**inner));
    return TensorOf(std::move(zeros));
  }
  if (element.dtype() == DType::kResource) return element;
  return Tensor::Zeros(element.dtype(), element.shape());
}

// What is missing counts as zero.
StatusOr<Tensor> SumOf(const Tensor& a, const Tensor& b, AddTensors add) {
  if (!a.IsInitialized()) return b;
  if (!b.IsInitialized()) return a;
  if (a.dtype() != DType::kVariant) return add(a, b);
  if (HoldsNothing(a)) return b;
  if (HoldsNothing(b)) return a;
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

TensorList::TensorList(const TensorList& like, Elements elements)
    : dtype_(like.dtype_),
      element_shape_(like.element_shape_),
      max_length_(like.max_length_),
      length_(static_cast<int64_t>(elements.size())),
      nesting_(1),
      row_(std::make_shared<Elements>(std::move(elements))) {
  for (const Tensor& element : *row_) nesting_ = std::max(nesting_, 1 + NestingOf(element));
}

TensorList::TensorList(const TensorList& like, int64_t length)
    : dtype_(like.dtype_),
      element_shape_(like.element_shape_),
      max_length_(like.max_length_),
      length_(length),
      nesting_(like.nesting_),
      row_(like.row_) {}

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

const Tensor& TensorList::at(int64_t i) const {
  const TensorList* list = this;
  while (list->rest_ && i < list->length_ - 1) list = list->rest_.get();
  return list->rest_ ? list->last_ : (*list->row_)[static_cast<size_t>(i)];
}

Ref<TensorList> TensorList::WithoutLast() const {
  return rest_ ? rest_ : Ref<TensorList>(new TensorList(*this, length_ - 1));
}

TensorList::Elements TensorList::ToElements() const {
  Elements elements(static_cast<size_t>(length_));
  const TensorList* list = this;
  for (; list->rest_; list = list->rest_.get()) {
    elements[static_cast<size_t>(list->length_ - 1)] = list->last_;
  }
  if (list->row_) std::copy_n(list->row_->begin(), list->length_, elements.begin());
  return elements;
}

bool TensorList::SetInPlace(int64_t i, const Tensor& element) {
  if (rest_ || !row_ || row_.use_count() != 1) return false;
  (*row_)[static_cast<size_t>(i)] = element;
  nesting_ = std::max(nesting_, 1 + NestingOf(element));
  return true;
}

// Lists on their way between tasks and in files have TensorFlow's form: the elements that are there
// as tensors, and bytes that say the rest.
StatusOr<std::string> TensorList::Encode() const {
  std::vector<uint64_t> missing;
  const Elements elements = ToElements();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i].IsInitialized()) missing.push_back(i);
  }
  std::string bytes;
  storage::AppendVarint(missing.size(), &bytes);
  for (const uint64_t i : missing) storage::AppendVarint(i, &bytes);
  storage::AppendVarint(static_cast<uint64_t>(dtype_), &bytes);
  storage::AppendVarint(static_cast<uint64_t>(max_length_), &bytes);
  tensorflow::TensorShapeProto shape;
  ShapeToProto(element_shape_, &shape);
  bytes += shape.SerializeAsString();
  return bytes;
}

std::vector<Tensor> TensorList::EncodeTensors() const {
  std::vector<Tensor> there;
  for (Tensor& element : ToElements()) {
    if (element.IsInitialized()) there.push_back(std::move(element));
  }
  return there;
}

StatusOr<Ref<TensorList>> TensorListFromBytes(absl::string_view bytes,
                                              const std::vector<Tensor>& there) {
  const Status malformed = InvalidArgument("A list of tensors came with malformed bytes");
  uint64_t num_missing = 0, dtype = 0, max_length = 0;
  if (!storage::TakeVarint64(&bytes, &num_missing)) return malformed;
  // Each takes a byte at least.
  if (num_missing > bytes.size()) return malformed;
  TensorList::Elements elements(num_missing + there.size());
  std::vector<bool> is_missing(elements.size(), false);
  for (uint64_t i = 0; i < num_missing; ++i) {
    uint64_t index = 0;
    if (!storage::TakeVarint64(&bytes, &index) || index >= elements.size()) return malformed;
    is_missing[index] = true;
  }
  size_t next = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (is_missing[i]) continue;
    if (next == there.size()) return malformed;  // an index came twice
    elements[i] = there[next++];
  }
  if (!storage::TakeVarint64(&bytes, &dtype) || !storage::TakeVarint64(&bytes, &max_length)) {
    return malformed;
  }
  tensorflow::TensorShapeProto proto;
  if (dtype > INT32_MAX || bytes.size() > INT32_MAX ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return malformed;
  }
  WEFT_ASSIGN_OR_RETURN(const DType element_dtype, DTypeFromNumber(static_cast<int>(dtype)));
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(proto));
  const TensorList empty(element_dtype, std::move(shape), static_cast<int64_t>(max_length));
  for (Tensor& element : elements) {
    if (element.dtype() == DType::kVariant && element.shape().IsScalar()) {
      // Once for each list in the list, however deep they lie.
      StatusOr<Ref<TensorList>> inner = TensorListOf(element);
      if (inner.ok()) element = TensorOf(*std::move(inner));
    }
    if (element.IsInitialized()) WEFT_RETURN_IF_ERROR(CheckElement(empty, element));
  }
  return MakeRef<TensorList>(empty, std::move(elements));
}

StatusOr<Ref<TensorList>> TensorListOf(const Variant& variant) {
  const Ref<VariantValue>& value = variant.value;
  auto* list = dynamic_cast<TensorList*>(value.get());
  if (list != nullptr) return Ref<TensorList>(list);
  const auto* encoded = dynamic_cast<const EncodedVariant*>(value.get());
  if (encoded != nullptr && encoded->type_name() == TensorList::kTypeName) {
    return TensorListFromBytes(encoded->metadata(), encoded->tensors());
  }
  return InvalidArgument("Input handle is not a list. Saw: '",
                         value ? value->type_name() : absl::string_view("nothing"), "'");
}

StatusOr<Ref<TensorList>> TensorListOf(const Tensor& tensor) {
  if (!tensor.shape().IsScalar()) {
    return InvalidArgument("Input handle must be a scalar, got shape ", tensor.shape().ToString());
  }
  return TensorListOf(*tensor.data<Variant>());
}

StatusOr<Ref<TensorList>> TensorListOfInput(const KernelContext& c, int i, DType dtype) {
  WEFT_ASSIGN_OR_RETURN(Ref<TensorList> list, TensorListOf(c.input(i)));
  if (list->dtype() == dtype) return list;
  return InvalidArgument("Invalid data types; op elements ", DTypeName(dtype),
                         " but list elements ", DTypeName(list->dtype()));
}

bool HoldsNothing(const Tensor& tensor) {
  return tensor.shape().IsScalar() && !tensor.data<Variant>()->value;
}

Tensor TensorOf(Ref<TensorList> list) { return Tensor::Scalar(Variant{std::move(list)}); }

StatusOr<PartialShape> ElementShapeOf(const Tensor& tensor) {
  WEFT_ASSIGN_OR_RETURN(const IndexVector sizes, IndexValues(tensor, "element_shape"));
  if (tensor.shape().IsScalar()) {
    if (sizes[0] == -1) return PartialShape();
    return InvalidArgument(
        "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  PartialShape shape{Shape()};
  for (const int64_t size : sizes) {
    if (size < -1) return InvalidArgument("Size ", size, " of `element_shape` must be >= -1");
    shape.AddDim(size);
  }
  return shape;
}

Status CheckElement(const TensorList& list, const Tensor& element) {
  if (element.dtype() != list.dtype()) {
    return InvalidArgument("Invalid data types; list elements ", DTypeName(list.dtype()),
                           " but the tensor has ", DTypeName(element.dtype()));
  }
  if (!list.element_shape().IsCompatibleWith(element.shape())) {
    return InvalidArgument(
        "Tried to put a tensor with incompatible shape into a list. Op element shape: ",
        element.shape().ToString(), " list shape: ", list.element_shape().ToString());
  }
  if (1 + NestingOf(element) <= kMaxNestedLists) return absl::OkStatus();
  return InvalidArgument("More than ", kMaxNestedLists, " lists lie in each other");
}

StatusOr<Shape> CommonShape(const TensorList& list, const PartialShape& wanted) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, wanted.MergeWith(list.element_shape()));
  if (!shape.IsFullyDefined()) {
    for (const Tensor& element : list.ToElements()) {
      if (!element.IsInitialized()) continue;
      WEFT_ASSIGN_OR_RETURN(shape, shape.MergeWith(element.shape()));
    }
  }
  if (shape.IsFullyDefined()) return shape.ToShape();
  return InvalidArgument(
      "The shape of the list's elements is not known, because element_shape does not say all of it "
      "and no element tells: ",
      shape.ToString());
}

StatusOr<Tensor> MissingElement(DType dtype, const Shape& shape) {
  return Tensor::Zeros(dtype, shape);
}

StatusOr<Ref<TensorList>> ZerosLike(const TensorList& list) {
  TensorList::Elements zeros = list.ToElements();
  for (Tensor& element : zeros) {
    WEFT_ASSIGN_OR_RETURN(element, ZeroOf(element));
  }
  return MakeRef<TensorList>(list, std::move(zeros));
}

StatusOr<Ref<TensorList>> AddLists(const TensorList& a, const TensorList& b, AddTensors add) {
  if (a.dtype() != b.dtype() || a.length() != b.length()) {
    return InvalidArgument("Trying to add two lists of tensors that differ: ", a.length(), " of ",
                           DTypeName(a.dtype()), " and ", b.length(), " of ", DTypeName(b.dtype()));
  }
  TensorList::Elements sums = a.ToElements();
  const TensorList::Elements others = b.ToElements();
  for (size_t i = 0; i < sums.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(sums[i], SumOf(sums[i], others[i], add));
  }
  return MakeRef<TensorList>(a, std::move(sums));
}

}  // namespace weft::ops
