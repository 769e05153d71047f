// SPDX-License-Identifier: Apache-2.0
// State that outlives a step: variables, queues, accumulators, tables, iterators.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "base/ref.h"
#include "base/status.h"

namespace weft {

// A stateful object. Each kind says itself what is thread-safe (all ours are).
class Resource : public RefCounted {
 public:
  virtual std::string DebugString() const = 0;
  // Called when the resource is removed while others still hold it: blocked operations on it must
  // end with CANCELLED.
  virtual void Close() {}
};

inline constexpr char kDefaultContainer[] = "localhost";

// A device's resources, by container, kind and name. Thread-safe. Kind is the C++ type T.
class ResourceManager {
 public:
  // The resource, or NotFound "Resource localhost/x (kind) does not exist."
  template <typename T>
  StatusOr<Ref<T>> Lookup(const std::string& container, const std::string& name) {
    WEFT_ASSIGN_OR_RETURN(Ref<Resource> found, LookupAny(typeid(T).name(), container, name));
    return Ref<T>(static_cast<T*>(found.get()));
  }
  // Creates it with `make` (StatusOr<Ref<T>>()) unless it is there; one caller creates.
  template <typename T>
  StatusOr<Ref<T>> LookupOrCreate(const std::string& container, const std::string& name,
                                  absl::FunctionRef<StatusOr<Ref<T>>()> make) {
    const auto erased = [&]() -> StatusOr<Ref<Resource>> {
      WEFT_ASSIGN_OR_RETURN(Ref<T> made, make());
      return Ref<Resource>(made);
    };
    WEFT_ASSIGN_OR_RETURN(Ref<Resource> found,
                          LookupOrCreateAny(typeid(T).name(), container, name, erased));
    return Ref<T>(static_cast<T*>(found.get()));
  }
  template <typename T>
  Status Remove(const std::string& container, const std::string& name) {
    return RemoveAny(typeid(T).name(), container, name);
  }
  // Removes whatever kind has this name.
  Status RemoveByName(const std::string& container, const std::string& name);
  // Changes whenever something is removed: who keeps a Ref across steps compares it to know when to
  // look the resource up again (named_resource.h).
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // Removes all of a container.
  void Cleanup(const std::string& container);
  void CleanupAll();
  // Calls `visit(container, name, resource)` for each.
  void Visit(
      absl::FunctionRef<void(const std::string&, const std::string&, const Resource&)> visit);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // container, kind, name
  StatusOr<Ref<Resource>> LookupAny(const char* kind, const std::string& container,
                                    const std::string& name);
  StatusOr<Ref<Resource>> LookupOrCreateAny(const char* kind, const std::string& container,
                                            const std::string& name,
                                            absl::FunctionRef<StatusOr<Ref<Resource>>()> make);
  Status RemoveAny(const char* kind, const std::string& container, const std::string& name);

  std::atomic<uint64_t> generation_{0};
  absl::Mutex mutex_;
  std::map<Key, Ref<Resource>> resources_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
