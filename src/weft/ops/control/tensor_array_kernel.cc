// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/control/tensor_array_kernel.h"

#include <algorithm>

#include "weft/kernel/scratch.h"

namespace weft::ops::control {
namespace {

template <typename T>
void AddTo(const Tensor& a, const Tensor& b, Tensor* sum) {
  const T* const x = a.data<T>();
  const T* const y = b.data<T>();
  T* const to = sum->data<T>();
  for (int64_t i = 0; i < a.num_elements(); ++i) to[i] = static_cast<T>(x[i] + y[i]);
}

using Numbers = TypeList<float, double, Half, Bfloat16, Complex64, Complex128, int8_t, int16_t,
                         int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;

StatusOr<Tensor> Add(const Tensor& a, const Tensor& b) {
  WEFT_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(a.dtype(), a.shape()));
  const bool known = VisitDType(a.dtype(), Numbers(), [&]<typename T>() { AddTo<T>(a, b, &sum); });
  if (known) return sum;
  return InvalidArgument("TensorArray gradients of type ", DTypeName(a.dtype()), " do not add up");
}

}  // namespace

Status TensorArray::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return InvalidArgument("TensorArray ", name_, " has already been closed.");
}

Status TensorArray::Fits(int64_t index, const Element& element, const Tensor& value) const {
  const auto refuse = [&](const auto&... why) {
    return InvalidArgument("TensorArray ", name_, ": Could not write to TensorArray index ", index,
                           " because ", why...);
  };
  if (value.dtype() != options_.dtype) {
    return refuse("the value dtype is ", DTypeName(value.dtype()), " but TensorArray dtype is ",
                  DTypeName(options_.dtype), ".");
  }
  if (!options_.element_shape.IsCompatibleWith(value.shape())) {
    return refuse("the value shape is ", value.shape().ToString(),
                  " which is incompatible with the TensorArray's inferred element shape: ",
                  options_.element_shape.ToString(), " (consider setting infer_shape=False).");
  }
  if (element.is_read) return refuse("it has already been read.");
  if (!element.is_written) return absl::OkStatus();
  if (!options_.is_gradient) return refuse("it has already been written to.");
  if (element.value.shape() == value.shape()) return absl::OkStatus();
  return refuse("the existing shape is ", element.value.shape().ToString(),
                " but the new input shape is ", value.shape().ToString(), ".");
}

Status TensorArray::Write(int64_t index, const Tensor& value) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || (!options_.dynamic_size && index >= size_)) {
    return InvalidArgument("TensorArray ", name_, ": Tried to write to index ", index,
                           " but array is not resizeable and size is: ", size_);
  }
  size_ = std::max(size_, index + 1);
  Element& element = elements_[index];
  WEFT_RETURN_IF_ERROR(Fits(index, element, value));
  if (options_.identical_element_shapes) options_.element_shape = value.shape();
  if (!element.is_written) {
    element.value = value;
    element.is_written = true;
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(element.value, Add(element.value, value));
  return absl::OkStatus();
}

StatusOr<Tensor> TensorArray::ReadMissing(int64_t index) {
  PartialShape shape = options_.element_shape;
  const auto element = elements_.find(index);
  if (element != elements_.end() && element->second.shape.IsFullyDefined()) {
    shape = element->second.shape;
  }
  if (shape.IsFullyDefined()) {
    WEFT_ASSIGN_OR_RETURN(const Shape full, shape.ToShape());
    return Tensor::Zeros(options_.dtype, full);
  }
  return InvalidArgument("TensorArray ", name_, ": Could not read from TensorArray index ", index,
                         ": it was never written, and the element shape is not fully defined: ",
                         shape.ToString(), ". With one, zeros would be read.");
}

StatusOr<Tensor> TensorArray::Read(int64_t index) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || (!options_.is_gradient && index >= size_)) {
    return InvalidArgument("TensorArray ", name_, ": Tried to read from index ", index,
                           " but array size is: ", size_);
  }
  const auto found = elements_.find(index);
  if (found == elements_.end() || !found->second.is_written) return ReadMissing(index);
  Element& element = found->second;
  if (element.is_cleared) {
    return InvalidArgument("TensorArray ", name_, ": Could not read index ", index,
                           " twice because it was cleared after a previous read (perhaps try "
                           "setting clear_after_read = false?).");
  }
  element.is_read = true;
  if (!options_.clear_after_read) return element.value;
  element.is_cleared = true;
  element.shape = element.value.shape();
  return std::move(element.value);
}

StatusOr<int64_t> TensorArray::size() const {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  return size_;
}

StatusOr<int64_t> TensorArray::SizeToWrite(int64_t wanted) const {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  return options_.dynamic_size ? std::max(size_, wanted) : size_;
}

Status TensorArray::CheckRoom(int64_t count) const {
  return Annotate(CheckRoomFor(count, sizeof(Element) + sizeof(int64_t), "elements"),
                  absl::StrCat("TensorArray ", name_));
}

StatusOr<PartialShape> TensorArray::MergeElementShape(const PartialShape& more) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  WEFT_ASSIGN_OR_RETURN(options_.element_shape, options_.element_shape.MergeWith(more));
  return options_.element_shape;
}

StatusOr<Ref<TensorArray>> TensorArray::MakeGradient(std::string name, const Shape& prefix) {
  const auto prefixed = [&](const PartialShape& shape) -> StatusOr<PartialShape> {
    if (!shape.known_rank()) return PartialShape();
    Dims sizes(prefix.dims().begin(), prefix.dims().end());
    sizes.insert(sizes.end(), shape.dims().begin(), shape.dims().end());
    return PartialShape::Make(sizes);
  };
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(CheckOpen());
  options_.dynamic_size = false;
  Options options{.dtype = options_.dtype, .is_gradient = true};
  options.identical_element_shapes = options_.identical_element_shapes;
  WEFT_ASSIGN_OR_RETURN(options.element_shape, prefixed(options_.element_shape));
  auto made = MakeRef<TensorArray>(std::move(name), options, size_);
  absl::MutexLock others(&made->mutex_);
  for (const auto& [index, element] : elements_) {
    const PartialShape shape = element.is_written && !element.is_cleared
                                   ? PartialShape(element.value.shape())
                                   : element.shape;
    WEFT_ASSIGN_OR_RETURN(made->elements_[index].shape, prefixed(shape));
  }
  return made;
}

void TensorArray::CloseForGood() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  elements_.clear();
}

}  // namespace weft::ops::control
