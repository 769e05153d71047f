// SPDX-License-Identifier: Apache-2.0
// Intrusive reference counting for objects that cross threads: RefCounted and Ref<T>.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weft {

// Starts with no owner; the first Ref owns it. Counting is thread-safe, the object itself need not
// be.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void AddRef() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void DropRef() const {
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Dispose();
    }
  }
  // True when the caller's Ref is the only one: nobody else can see the object.
  bool HasOneRef() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~RefCounted() = default;
  // What becomes of an object whose last owner let go. One that is kept for later begins again
  // without an owner by `Renew`.
  virtual void Dispose() const { delete this; }
  void Renew() const { count_.store(0, std::memory_order_relaxed); }

 private:
  mutable std::atomic<int32_t> count_{0};
};

// A shared, nullable owner of a RefCounted object.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): reads as a pointer
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->AddRef();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other)
      : Ref(other.get()) {}  // NOLINT(google-explicit-constructor)
  ~Ref() {
    if (object_ != nullptr) object_->DropRef();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  void reset() { *this = Ref(); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace weft
