// SPDX-License-Identifier: Apache-2.0
// The contract between the executor and the code of an op.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "base/status.h"
#include "weft/graph/op_call.h"
#include "weft/kernel/device.h"
#include "weft/kernel/kernel_context.h"

namespace weft {

// What a kernel is made from: its call, before any step. Attributes are validated here, once.
class KernelConstruction {
 public:
  // Both must outlive it.
  KernelConstruction(const OpCall& call, Device* device) : call_(call), device_(device) {}
  const std::string& name() const { return call_.name(); }
  const std::string& op() const { return call_.op(); }
  const OpCall& call() const { return call_; }
  Device* device() const { return device_; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view attr_name) const {
    return call_.Attr<T>(attr_name);
  }
  template <typename T>
  T AttrOr(absl::string_view attr_name, T fallback) const {
    return FindAttrOr<T>(call_.attrs(), attr_name, std::move(fallback));
  }
  int num_inputs() const { return call_.num_inputs(); }
  int num_outputs() const { return call_.num_outputs(); }
  DType input_dtype(int i) const { return call_.input_type(i).dtype; }
  DType output_dtype(int i) const { return call_.output_type(i).dtype; }

 private:
  const OpCall& call_;
  Device* const device_;
};

// The code of one call. Made once, then called by many steps, maybe at once: state of its own must
// be constant or guarded. Compute reads inputs and makes every output, or returns an error, whose
// message the caller completes with the call's name.
class OpKernel {
 public:
  using Done = absl::AnyInvocable<void(Status)>;

  virtual ~OpKernel() = default;
  virtual Status Compute(KernelContext& context) = 0;
  // Kernels that wait (queues, receives) override this and is_async: they must not block the
  // caller, and call `done` once, maybe later and on another thread. `context` lives until then.
  virtual void ComputeAsync(KernelContext& context, Done done) { done(Compute(context)); }
  virtual bool is_async() const { return false; }
};

// Base of kernels that wait.
class AsyncOpKernel : public OpKernel {
 public:
  Status Compute(KernelContext&) final {
    return Internal("An asynchronous kernel was called synchronously");
  }
  void ComputeAsync(KernelContext& context, Done done) override = 0;
  bool is_async() const final { return true; }
};

}  // namespace weft
