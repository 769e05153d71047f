// SPDX-License-Identifier: Apache-2.0
// A kernel's way to the resource that its node names.
#pragma once

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/op_kernel.h"
#include "weft/kernel/resource.h"

namespace weft {

// The resource under the node's `container` (or the session's default) and `shared_name` (or the
// node's name), looked up once and again only after something was removed from the device.
// Thread-safe; belongs to one kernel.
template <typename T>
class NamedResource {
 public:
  explicit NamedResource(const KernelConstruction& c)
      : container_(c.AttrOr<std::string>("container", "")),
        name_(c.AttrOr<std::string>("shared_name", "")) {
    if (name_.empty()) name_ = c.name();
  }

  const std::string& name() const { return name_; }
  const std::string& container(const KernelContext& c) const {
    return container_.empty() ? c.default_container() : container_;
  }

  // Creates it with `make` where it is missing.
  StatusOr<Ref<T>> Get(const KernelContext& c, absl::FunctionRef<StatusOr<Ref<T>>()> make) {
    ResourceManager& resources = c.resources();
    const uint64_t generation = resources.generation();
    {
      absl::MutexLock lock(&mutex_);
      if (cached_ && owner_ == &resources && generation_ == generation) [[likely]]
        return cached_;
    }
    WEFT_ASSIGN_OR_RETURN(Ref<T> found, resources.LookupOrCreate<T>(container(c), name_, make));
    absl::MutexLock lock(&mutex_);
    cached_ = found;
    owner_ = &resources;
    generation_ = generation;
    return found;
  }

 private:
  const std::string container_;
  std::string name_;
  absl::Mutex mutex_;
  Ref<T> cached_ ABSL_GUARDED_BY(mutex_);
  const ResourceManager* owner_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
