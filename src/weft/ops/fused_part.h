// SPDX-License-Identifier: Apache-2.0
// What kernels share that the compiler makes of several nodes.
#pragma once

#include <string>

#include "weft/kernel/op_spec.h"
#include "weft/ops/broadcast.h"

namespace weft::ops {

// An error of a part, under the name that the part has in the user's graph.
inline Status ErrorOfPart(const std::string& name, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), absl::StrCat(status.message(), "\n\t [[{{node ", name, "}}]]"));
}

// An addition of two tensors that broadcast, through a unary activation or none.
struct SumPart {
  std::string name;  // of the addition in the user's graph
  bool other_is_left = false;
  decltype(TileBody::run) add = nullptr;
  decltype(TileBody::run) activation = nullptr;
};

// Output 0 = activation(made + other).
template <typename T>
Status AddBroadcast(KernelContext& c, const SumPart& part, const Tensor& made,
                    const Tensor& other) {
  StatusOr<Shape> shape = part.other_is_left ? BroadcastShapes(other.shape(), made.shape())
                                             : BroadcastShapes(made.shape(), other.shape());
  if (!shape.ok()) return ErrorOfPart(part.name, shape.status());
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, *shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const auto loops = MakeBroadcastLoops<2>(*shape, {&made.shape(), &other.shape()});
  loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 2>& from, int64_t at) {
    auto* row = reinterpret_cast<std::byte*>(out->data<T>() + at);
    part.add(reinterpret_cast<const std::byte*>(made.data<T>() + from[0]),
             static_cast<int>(loops.inner.stride[0]),
             reinterpret_cast<const std::byte*>(other.data<T>() + from[1]),
             static_cast<int>(loops.inner.stride[1]), row, loops.inner.size);
    if (part.activation != nullptr) part.activation(row, 1, nullptr, 0, row, loops.inner.size);
  });
  return absl::OkStatus();
}

}  // namespace weft::ops
