// SPDX-License-Identifier: Apache-2.0
// Handles of queues and accumulators: a resource, or, in the older ops, a reference to two strings
// (container and name).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/named_resource.h"
#include "weft/kernel/variable.h"

namespace weft::ops::state {

// What a creating kernel gives as output 0, for as long as the resource stays the same.
// Thread-safe.
template <typename T>
class HandleOutput {
 public:
  // `type_name` is what the handle says it leads to.
  HandleOutput(const KernelConstruction& c, std::string type_name)
      : resource_(c), type_name_(std::move(type_name)) {}

  const std::string& name() const { return resource_.name(); }

  // Creates the resource with `make` where it is missing; `check` refuses one that others created.
  Status Give(KernelContext& c, absl::FunctionRef<StatusOr<Ref<T>>()> make,
              absl::FunctionRef<Status(const T&)> check) {
    WEFT_ASSIGN_OR_RETURN(Ref<T> resource, resource_.Get(c, make));
    absl::MutexLock lock(&mutex_);
    if (resource.get() != last_) {
      WEFT_RETURN_IF_ERROR(check(*resource));
      Renew(c, resource);
      last_ = resource.get();
    }
    if (c.call().output_type(0).is_ref) {
      c.SetOutputVariable(0, names_);
    } else {
      c.SetOutput(0, handle_);
    }
    return absl::OkStatus();
  }

 private:
  void Renew(const KernelContext& c, const Ref<T>& resource) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string& container = resource_.container(c);
    handle_ = Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                            .container = container,
                                            .name = resource_.name(),
                                            .type_name = type_name_,
                                            .object = resource});
    names_ = MakeRef<Variable>(resource_.name(), DType::kString, Shape{2});
    names_->Assign(Tensor::Vector<std::string>({container, resource_.name()}));
  }

  NamedResource<T> resource_;
  const std::string type_name_;
  absl::Mutex mutex_;
  const T* last_ ABSL_GUARDED_BY(mutex_) = nullptr;  // kept alive by handle_
  Tensor handle_ ABSL_GUARDED_BY(mutex_);
  Ref<Variable> names_ ABSL_GUARDED_BY(mutex_);
};

// The resource that input i leads to, in either form.
template <typename T>
StatusOr<Ref<T>> ResourceOfInput(const KernelContext& c, int i = 0) {
  if (!c.call().input_type(i).is_ref) {
    WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(i));
    if (auto* found = dynamic_cast<T*>(handle->object.get())) return Ref<T>(found);
    return c.resources().Lookup<T>(handle->container, handle->name);
  }
  WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(i));
  WEFT_ASSIGN_OR_RETURN(Tensor names, variable->Read());
  if (names.dtype() != DType::kString || names.num_elements() != 2) {
    return InvalidArgument("Resource handle must have two elements, got ", names.ToString());
  }
  return c.resources().Lookup<T>(names.data<std::string>()[0], names.data<std::string>()[1]);
}

}  // namespace weft::ops::state
