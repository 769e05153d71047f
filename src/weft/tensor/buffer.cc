// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/buffer.h"

#include <new>
#include <string>
#include <utility>

#include "weft/tensor/pool_allocator.h"
#include "weft/tensor/resource_handle.h"
#include "weft/tensor/variant.h"

namespace weft {
namespace {

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(std::byte* data, size_t size, absl::AnyInvocable<void()> release)
      : Buffer(data, size), release_(std::move(release)) {}
  ~WrappedBuffer() override {
    if (release_) release_();
  }

 private:
  absl::AnyInvocable<void()> release_;
};

class ReadOnlyBuffer final : public Buffer {
 public:
  ReadOnlyBuffer(std::byte* data, size_t size, Ref<RefCounted> keep)
      : Buffer(data, size, /*read_only=*/true), keep_(std::move(keep)) {}

 private:
  const Ref<RefCounted> keep_;
};

template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  explicit ObjectBuffer(T* objects, int64_t count)
      : Buffer(reinterpret_cast<std::byte*>(objects), sizeof(T) * count), objects_(objects) {}
  ~ObjectBuffer() override { delete[] objects_; }

 private:
  T* const objects_;
};

template <typename T>
Ref<Buffer> MakeObjects(int64_t count) {
  T* objects = new (std::nothrow) T[static_cast<size_t>(count)];
  if (objects == nullptr) return nullptr;
  return MakeRef<ObjectBuffer<T>>(objects, count);
}
}  // namespace

Ref<Buffer> WrapMemory(std::byte* data, size_t size, absl::AnyInvocable<void()> release) {
  return MakeRef<WrappedBuffer>(data, size, std::move(release));
}

Ref<Buffer> WrapReadOnly(std::byte* data, size_t size, Ref<RefCounted> keep) {
  return MakeRef<ReadOnlyBuffer>(data, size, std::move(keep));
}

Ref<Buffer> AllocateObjects(DType dtype, int64_t count) {
  if (count < 0 || static_cast<uint64_t>(count) > SIZE_MAX / 256) return nullptr;
  if (!HostHasRoomFor(static_cast<size_t>(count) * DTypeSize(dtype))) return nullptr;
  if (dtype == DType::kString) return MakeObjects<std::string>(count);
  if (dtype == DType::kResource) return MakeObjects<ResourceHandle>(count);
  if (dtype == DType::kVariant) return MakeObjects<Variant>(count);
  return nullptr;
}

}  // namespace weft
