// SPDX-License-Identifier: Apache-2.0
// A tensor that a session keeps from one step for later ones, behind a handle.
#pragma once

#include <string>
#include <utility>

#include "weft/kernel/resource.h"
#include "weft/tensor/tensor.h"

namespace weft {

// The container that handles of such tensors name when they travel as resources.
inline constexpr char kTensorHandleContainer[] = "TensorHandle";

// Lies among the resources of the session under its handle, "node;number;device".
class SessionTensor final : public Resource {
 public:
  explicit SessionTensor(Tensor value) : value_(std::move(value)) {}
  const Tensor& value() const { return value_; }
  std::string DebugString() const override { return "session tensor " + value_.ToString(4); }

 private:
  const Tensor value_;
};

}  // namespace weft
