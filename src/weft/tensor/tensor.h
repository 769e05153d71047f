// SPDX-License-Identifier: Apache-2.0
// Tensor: the value that flows along the edges of a graph.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "absl/types/span.h"

#include "base/ref.h"
#include "base/status.h"
#include "weft/tensor/buffer.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/resource_handle.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/variant.h"

namespace weft {

// A cheap handle on a ref-counted, row-major, 64-byte aligned buffer: dtype, shape, bytes. Copies
// and slices share the buffer. Handles may be copied on any thread; contents are not synchronised,
// and who writes must know that HasOneRef() or otherwise owns the bytes.
//
// The bytes may lie in a device's memory. The plan sees to it that kernels of the host never meet
// such a tensor; data(), scalar(), bytes() and CopyFrom() of one fault (see kNotOnHost).
class Tensor {
 public:
  Tensor() = default;  // not initialized: dtype kInvalid
  // ResourceExhausted when memory is short. Plain elements are arbitrary, others default-made.
  static StatusOr<Tensor> Allocate(DType dtype, const Shape& shape,
                                   Allocator& allocator = HostAllocator());
  // Elements all zero bits (empty strings).
  static StatusOr<Tensor> Zeros(DType dtype, const Shape& shape);
  // A view of `buffer` from `offset` bytes on; the buffer must be large enough.
  Tensor(DType dtype, const Shape& shape, Ref<Buffer> buffer, size_t offset = 0)
      : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)), data_(buffer_->data() + offset) {}

  // Small tensors of known size, for constants and tests; memory is taken for granted.
  template <typename T>
  static Tensor Scalar(T value) {
    return FromSpan<T>(Shape(), absl::MakeConstSpan(&value, 1));
  }
  static Tensor Scalar(const char* text) { return Scalar<std::string>(text); }
  template <typename T>
  static Tensor Vector(std::initializer_list<T> values) {
    return FromSpan<T>(Shape{static_cast<int64_t>(values.size())},
                       absl::MakeConstSpan(values.begin(), values.size()));
  }
  // Not initialized, so that no session takes it, where there are not as many values as the shape
  // has elements.
  template <typename T>
  static Tensor FromSpan(const Shape& shape, absl::Span<const T> values) {
    if (static_cast<int64_t>(values.size()) != shape.num_elements()) return Tensor();
    Tensor tensor = AllocateOrDie(DTypeOf<T>, shape);
    std::copy(values.begin(), values.end(), tensor.data<T>());
    return tensor;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return shape_.num_elements(); }
  // Bytes of the elements as they lie in memory.
  size_t size_bytes() const { return static_cast<size_t>(num_elements()) * DTypeSize(dtype_); }
  bool IsInitialized() const { return dtype_ != DType::kInvalid; }

  // The elements; null if not initialized. T must be the dtype's C++ type: another one is an error
  // of the program, which ends with a message that names both (in a kernel: its step does). The
  // check is one comparison: fetch the pointer once, before a loop.
  template <typename T>
  T* data() {
    if (dtype_ != DTypeOf<T>) [[unlikely]]
      RefuseType(DTypeOf<T>);
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    if (dtype_ != DTypeOf<T>) [[unlikely]]
      RefuseType(DTypeOf<T>);
    return reinterpret_cast<const T*>(data_);
  }
  // The elements as what moves them without knowing what they mean: T has their size. Unchecked.
  template <typename T>
  T* bits() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* bits() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  absl::Span<const T> span() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  absl::Span<T> mutable_span() {
    return absl::Span<T>(data<T>(), static_cast<size_t>(num_elements()));
  }
  template <typename T>
  const T& scalar() const {
    return *data<T>();
  }
  std::byte* bytes() { return data_; }
  const std::byte* bytes() const { return data_; }
  const Ref<Buffer>& buffer() const { return buffer_; }
  // The device memory that the elements lie in; null on the host.
  DeviceMemory* memory() const { return buffer_ ? buffer_->memory() : nullptr; }
  // Where they lie there, as the device counts. Only for tensors of a device.
  uint64_t device_address() const;
  // The same elements on the host: itself if it is there, else a copy, for which it waits.
  StatusOr<Tensor> ToHost() const;
  // The same elements in `memory`: itself if it is there, else a copy, for which it waits.
  StatusOr<Tensor> ToDevice(DeviceMemory* memory) const;

  // True when no other handle shares the bytes.
  bool HasOneRef() const { return buffer_ && buffer_->HasOneRef(); }
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ && buffer_.get() == other.buffer_.get();
  }
  // The same bytes under another shape of as many elements (InvalidArgument otherwise).
  StatusOr<Tensor> Reshaped(const Shape& shape) const;
  // Rows [begin, end) of dimension 0, sharing the bytes. Bounds must hold.
  Tensor SliceRows(int64_t begin, int64_t end) const;
  // The same bytes seen as another dtype of equal element size.
  Tensor BitcastTo(DType dtype, const Shape& shape) const;
  // A copy with bytes of its own, in the same memory.
  StatusOr<Tensor> Clone() const;
  // Copies elements from `other`, of equal dtype and number of elements.
  void CopyFrom(const Tensor& other);

  // "float [2,3] [[1 2 3][4 5 6]]", cut after `max_elements`.
  std::string ToString(int max_elements = 16) const;

 private:
  static Tensor AllocateOrDie(DType dtype, const Shape& shape);
  // Throws std::logic_error if there are elements.
  void RefuseType(DType asked) const;

  DType dtype_ = DType::kInvalid;
  Shape shape_;
  Ref<Buffer> buffer_;
  std::byte* data_ = nullptr;
};

}  // namespace weft
