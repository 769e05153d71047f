// SPDX-License-Identifier: Apache-2.0
// The contract between the executor and the code of an op.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/kernel/device.h"
#include "weft/kernel/kernel_context.h"

namespace weft {

// What a kernel is made from: its node, before any step. Attributes are validated here, once.
class KernelConstruction {
 public:
  KernelConstruction(const Node* node, Device* device) : node_(node), device_(device) {}
  const std::string& name() const { return node_->name(); }
  const std::string& op() const { return node_->op(); }
  const Node& node() const { return *node_; }
  Device* device() const { return device_; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view attr_name) const {
    return node_->Attr<T>(attr_name);
  }
  template <typename T>
  T AttrOr(absl::string_view attr_name, T fallback) const {
    return FindAttrOr<T>(node_->attrs(), attr_name, std::move(fallback));
  }
  int num_inputs() const { return node_->num_inputs(); }
  int num_outputs() const { return node_->num_outputs(); }
  DType input_dtype(int i) const { return node_->input_type(i).dtype; }
  DType output_dtype(int i) const { return node_->output_type(i).dtype; }

 private:
  const Node* const node_;
  Device* const device_;
};

// The code of one node. Made once, then called by many steps, maybe at once: state of its own must
// be constant or guarded. Compute reads inputs and makes every output, or returns an error, whose
// message the caller completes with the node's name.
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
