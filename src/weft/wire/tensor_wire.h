// SPDX-License-Identifier: Apache-2.0
// Tensors on the wire inside larger messages, without copies: out as a slice of the tensor's own
// memory, in straight from the message into a new tensor. Functions are thread-safe.
#pragma once

#include <string>

#include <google/protobuf/io/coded_stream.h>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"
#include "weft/wire/payload.h"

namespace weft::wire {

// Appends field `field` of a message: a TensorProto (dtype, shape, tensor_content, in this order,
// which TensorFlow's fast reader needs). The tensor's bytes must not change while the payload
// lives. Errors as TensorToProto.
Status AppendTensor(int field, const Tensor& tensor, Payload* payload);
// The same for a NamedTensorProto.
Status AppendNamedTensor(int field, absl::string_view name, const Tensor& tensor, Payload* payload);

// Appends a field of bytes (or a serialised message).
void AppendBytes(int field, absl::string_view bytes, Payload* payload);
void AppendVarint(int field, uint64_t value, Payload* payload);

// Reads one TensorProto of `size` bytes. InvalidArgument says what is wrong, as TensorFromProto.
StatusOr<Tensor> ReadTensor(google::protobuf::io::CodedInputStream* in, int size);
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
StatusOr<NamedTensor> ReadNamedTensor(google::protobuf::io::CodedInputStream* in, int size);

}  // namespace weft::wire
