// SPDX-License-Identifier: Apache-2.0
// Objects that a step makes and that die with it, behind resource handles.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/kernel/kernel_context.h"
#include "weft/kernel/resource.h"
#include "weft/kernel/variable.h"

namespace weft::ops::control {

// Keeps `made` with the step under its name and gives its handle as output 0: a resource, or, in
// older ops, a reference to two strings.
template <typename T>
Status GiveStepResource(KernelContext& c, const std::string& name, const char* type_name,
                        absl::FunctionRef<StatusOr<Ref<T>>()> make) {
  if (c.environment().step_resources == nullptr) return Internal("The step keeps no resources");
  WEFT_ASSIGN_OR_RETURN(Ref<T> object, c.environment().step_resources->LookupOrCreate<T>(
                                           kDefaultContainer, name, make));
  if (c.call().output_type(0).is_ref) {
    auto names = MakeRef<Variable>(name, DType::kString, Shape{2});
    names->Assign(Tensor::Vector<std::string>({kDefaultContainer, name}));
    c.SetOutputVariable(0, std::move(names));
    return absl::OkStatus();
  }
  c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                               .container = kDefaultContainer,
                                               .name = name,
                                               .type_name = type_name,
                                               .object = object}));
  return absl::OkStatus();
}

// What input 0 leads to. NotFound if this step made no such object.
template <typename T>
StatusOr<Ref<T>> StepResourceOfInput(const KernelContext& c) {
  if (c.call().input_type(0).is_ref) {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    WEFT_ASSIGN_OR_RETURN(const Tensor names, variable->Read());
    if (names.dtype() != DType::kString || names.num_elements() != 2) {
      return InvalidArgument("Resource handle must have two elements, got ", names.ToString());
    }
    if (c.environment().step_resources == nullptr) return Internal("The step keeps no resources");
    return c.environment().step_resources->Lookup<T>(names.data<std::string>()[0],
                                                     names.data<std::string>()[1]);
  }
  WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
  if (auto* found = dynamic_cast<T*>(handle->object.get())) return Ref<T>(found);
  if (c.environment().step_resources == nullptr) return Internal("The step keeps no resources");
  return c.environment().step_resources->Lookup<T>(handle->container, handle->name);
}

// `base` and a number that no other object of this process has: a node in a loop makes several.
inline std::string UniqueStepName(const std::string& base) {
  static std::atomic<uint64_t> next{0};
  return absl::StrCat(base, "_", next.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace weft::ops::control
