// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/tensor.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "absl/strings/escaping.h"
#include "absl/synchronization/notification.h"

#include "weft/tensor/device_memory.h"

namespace weft {
namespace {

template <typename T>
void AppendElement(std::string* out, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    absl::StrAppend(out, "\"", absl::CHexEscape(value.substr(0, 64)), "\"");
  } else if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    absl::StrAppend(out, "<resource ", value.name, ">");
  } else if constexpr (std::is_same_v<T, Variant>) {
    absl::StrAppend(out, "<variant ", value.value ? value.value->type_name() : "empty", ">");
  } else if constexpr (requires { value.imag(); }) {
    absl::StrAppend(out, "(", value.real(), ",", value.imag(), ")");
  } else if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t>) {
    absl::StrAppend(out, static_cast<int>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    absl::StrAppend(out, value);
  } else if constexpr (requires { static_cast<float>(value); }) {
    absl::StrAppend(out, static_cast<float>(value));
  } else {
    absl::StrAppend(out, static_cast<int>(value.bits));
  }
}

}  // namespace

void Tensor::RefuseType(DType asked) const {
  if (!IsInitialized()) return;
  throw std::logic_error(absl::StrCat("A tensor of ", DTypeName(dtype_), " ", shape_.ToString(),
                                      " is read as ", DTypeName(asked),
                                      ": Tensor::data<T>() needs the T of its dtype()"));
}

StatusOr<Tensor> Tensor::Allocate(DType dtype, const Shape& shape, Allocator& allocator) {
  const size_t element_size = DTypeSize(dtype);
  if (element_size == 0)
    return InvalidArgument("Tensor needs a valid dtype, got ", DTypeName(dtype));
  size_t size = 0;
  Ref<Buffer> buffer;
  if (!__builtin_mul_overflow(static_cast<size_t>(shape.num_elements()), element_size, &size)) {
    buffer =
        IsPlain(dtype) ? allocator.Allocate(size) : AllocateObjects(dtype, shape.num_elements());
  }
  if (!buffer) {
    return ResourceExhausted("Out of memory for a tensor: ", DTypeName(dtype), " ",
                             shape.ToString(), ", ", size, " bytes");
  }
  return Tensor(dtype, shape, std::move(buffer));
}

StatusOr<Tensor> Tensor::Zeros(DType dtype, const Shape& shape) {
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Allocate(dtype, shape));
  if (IsPlain(dtype)) std::memset(tensor.bytes(), 0, tensor.size_bytes());
  return tensor;
}

Tensor Tensor::AllocateOrDie(DType dtype, const Shape& shape) {
  StatusOr<Tensor> tensor = Allocate(dtype, shape);
  if (!tensor.ok()) throw std::bad_alloc();
  return *std::move(tensor);
}

StatusOr<Tensor> Tensor::Reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    return InvalidArgument("Shapes have different numbers of elements: ", shape_.ToString(),
                           " and ", shape.ToString());
  }
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::SliceRows(int64_t begin, int64_t end) const {
  Tensor view = *this;
  const int64_t row = dim(0) == 0 ? 0 : num_elements() / dim(0);
  view.shape_.SetDim(0, end - begin);
  view.data_ = data_ + static_cast<size_t>(begin * row) * DTypeSize(dtype_);
  return view;
}

Tensor Tensor::BitcastTo(DType dtype, const Shape& shape) const {
  Tensor view = *this;
  view.dtype_ = dtype;
  view.shape_ = shape;
  return view;
}

namespace {

// Calls `copy` with a callback and waits for it: devices answer or fail, they do not hang.
Status WaitFor(absl::FunctionRef<void(DeviceMemory::Done)> copy) {
  Status status;
  absl::Notification ended;
  copy([&](Status s) {
    status = std::move(s);
    ended.Notify();
  });
  ended.WaitForNotification();
  return status;
}

}  // namespace

uint64_t Tensor::device_address() const {
  const auto& block = static_cast<const DeviceBuffer&>(*buffer_);
  return block.address() + (reinterpret_cast<uintptr_t>(data_) - kNotOnHost);
}

StatusOr<Tensor> Tensor::ToHost() const {
  DeviceMemory* const from = memory();
  if (from == nullptr) return *this;
  WEFT_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_));
  WEFT_RETURN_IF_ERROR(
      WaitFor([&](DeviceMemory::Done done) { from->CopyOut(*this, copy, std::move(done)); }));
  return copy;
}

StatusOr<Tensor> Tensor::ToDevice(DeviceMemory* to) const {
  DeviceMemory* const from = memory();
  if (from == to) return *this;
  if (from != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const Tensor between, ToHost());
    return between.ToDevice(to);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_, to->allocator()));
  WEFT_RETURN_IF_ERROR(
      WaitFor([&](DeviceMemory::Done done) { to->CopyIn(*this, copy, std::move(done)); }));
  return copy;
}

StatusOr<Tensor> Tensor::Clone() const {
  if (DeviceMemory* const device = memory(); device != nullptr) {
    WEFT_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_, device->allocator()));
    // Nobody waits: what the device is asked later happens after the copy, and a device that fails
    // says so in every later answer.
    device->CopyAcross(*this, copy, [](Status) {});
    return copy;
  }
  WEFT_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype_, shape_));
  copy.CopyFrom(*this);
  return copy;
}

void Tensor::CopyFrom(const Tensor& other) {
  if (IsPlain(dtype_)) {
    if (size_bytes() > 0) std::memcpy(data_, other.data_, size_bytes());
  } else if (dtype_ == DType::kString) {
    std::copy_n(other.data<std::string>(), num_elements(), data<std::string>());
  } else if (dtype_ == DType::kResource) {
    std::copy_n(other.data<ResourceHandle>(), num_elements(), data<ResourceHandle>());
  } else if (dtype_ == DType::kVariant) {
    std::copy_n(other.data<Variant>(), num_elements(), data<Variant>());
  }
}

std::string Tensor::ToString(int max_elements) const {
  if (!IsInitialized()) return "<uninitialized>";
  if (memory() != nullptr) {
    return absl::StrCat(DTypeName(dtype_), " ", shape_.ToString(), " on ", memory()->name());
  }
  std::string out = absl::StrCat(DTypeName(dtype_), " ", shape_.ToString(), " [");
  const int64_t shown = std::min<int64_t>(max_elements, num_elements());
  switch (dtype_) {
#define WEFT_PRINT(type, name)              \
  case DType::name:                         \
    for (int64_t i = 0; i < shown; ++i) {   \
      if (i > 0) out += ' ';                \
      AppendElement(&out, data<type>()[i]); \
    }                                       \
    break;
    WEFT_DTYPE_LIST(WEFT_PRINT)
#undef WEFT_PRINT
    case DType::kInvalid:
      break;
  }
  out += shown < num_elements() ? " ...]" : "]";
  return out;
}

}  // namespace weft
