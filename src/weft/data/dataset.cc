// SPDX-License-Identifier: Apache-2.0
#include "weft/data/dataset.h"

#include <algorithm>
#include <cstring>

namespace weft::data {

StatusOr<Element> Dataset::At(const ContextPtr& context, int64_t index) const {
  if (index < 0) return OutOfRange("Index out of range: ", index);
  WEFT_ASSIGN_OR_RETURN(const IteratorPtr iterator, MakeIterator(context));
  Element element;
  for (int64_t i = 0; i <= index; ++i) {
    WEFT_ASSIGN_OR_RETURN(const bool found, iterator->Next(&element));
    if (!found) return OutOfRange("Index out of range [0, ", i, "): ", index);
  }
  return element;
}

Status Dataset::CheckRandomOrder() const {
  if (HasRandomAccess()) return input() == nullptr ? absl::OkStatus() : input()->CheckRandomOrder();
  return FailedPrecondition(origin_ == nullptr ? "A part of a dataset" : origin_->op.c_str(),
                            " does not support random access.");
}

StatusOr<DatasetRef> DatasetOf(const Tensor& variant) {
  if (variant.dtype() != DType::kVariant || !variant.shape().IsScalar()) {
    return InvalidArgument("Dataset tensor must be a scalar of dtype DT_VARIANT.");
  }
  auto* dataset = dynamic_cast<Dataset*>(variant.data<Variant>()->value.get());
  if (dataset == nullptr) return InvalidArgument("Tensor must be a Dataset object.");
  return DatasetRef(dataset);
}

Tensor VariantOf(DatasetRef dataset) { return Tensor::Scalar(Variant{std::move(dataset)}); }

Status CheckSpec(const ElementSpec& wanted, const ElementSpec& got) {
  if (wanted.types.size() != got.types.size()) {
    return InvalidArgument("Number of components does not match: expected ", wanted.types.size(),
                           " types but got ", got.types.size(), ".");
  }
  for (size_t i = 0; i < wanted.types.size(); ++i) {
    if (wanted.types[i] != got.types[i]) {
      return InvalidArgument("Data type mismatch at component ", i, ": expected ",
                             DTypeName(wanted.types[i]), " but got ", DTypeName(got.types[i]), ".");
    }
  }
  for (size_t i = 0; i < wanted.shapes.size() && i < got.shapes.size(); ++i) {
    if (!wanted.shapes[i].IsCompatibleWith(got.shapes[i])) {
      return InvalidArgument("Incompatible shapes at component ", i, ": expected ",
                             wanted.shapes[i].ToString(), " but got ", got.shapes[i].ToString(),
                             ".");
    }
  }
  return absl::OkStatus();
}

StatusOr<Tensor> RowOf(const Tensor& tensor, int64_t row) {
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(tensor.shape().dims().subspan(1)));
  return tensor.SliceRows(row, row + 1).BitcastTo(tensor.dtype(), shape);
}

void CopyInto(const Tensor& from, Tensor* to, int64_t to_index) {
  const int64_t n = from.num_elements();
  if (n == 0) return;
  const auto copy = [&]<typename T>() { std::copy_n(from.data<T>(), n, to->data<T>() + to_index); };
  if (VisitDType(from.dtype(), TypeList<std::string, ResourceHandle, Variant>(), copy)) return;
  const size_t size = DTypeSize(from.dtype());
  std::memcpy(to->bytes() + static_cast<size_t>(to_index) * size, from.bytes(),
              static_cast<size_t>(n) * size);
}

int64_t AddCardinalities(int64_t a, int64_t b) {
  if (a == kInfinite || b == kInfinite) return kInfinite;
  if (a == kUnknown || b == kUnknown) return kUnknown;
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? kUnknown : sum;
}

}  // namespace weft::data
