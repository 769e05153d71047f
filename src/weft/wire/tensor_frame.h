// SPDX-License-Identifier: Apache-2.0
// A tensor as a frame of the data connection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/kernel/rendezvous.h"
#include "weft/tensor/tensor.h"
#include "weft/transport/frame.h"
#include "weft/transport/region.h"

namespace weft::wire {

// The meta bytes of a Tensor frame; the header's `key` and `step` say which tensor it is.
struct TensorMeta {
  DType dtype = DType::kInvalid;
  bool is_dead = false;
  bool is_proto = false;  // the body is a TensorProto: strings, handles, variants
  uint64_t frame = 0;     // of a loop
  int64_t iteration = 0;
  Shape shape;

  std::string Encode() const;
  // InvalidArgument for bytes that are no such meta, or a body whose size does not fit.
  static StatusOr<TensorMeta> Parse(absl::string_view bytes, uint64_t body_bytes);
};

struct TensorFrame {
  transport::FrameHeader header;
  std::string meta;
  std::vector<transport::Region> body;  // empty, or one that shares the tensor's bytes
};
// Unimplemented for a variant that cannot leave the process.
StatusOr<TensorFrame> MakeTensorFrame(int64_t step, const RendezvousKey& key, const Tensor& tensor,
                                      bool is_dead);

// Memory for the body of a frame; ResourceExhausted when it is short.
StatusOr<transport::Region> AllocateBody(uint64_t bytes);
// The tensor in a received body, which was allocated by AllocateBody or is another task's own
// tensor.
StatusOr<Tensor> TensorFromBody(const TensorMeta& meta, const transport::Region& body);

}  // namespace weft::wire
