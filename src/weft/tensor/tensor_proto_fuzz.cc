// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TensorProto: an error or a tensor that survives another round trip.
#include <cstdlib>

#include <google/protobuf/stubs/logging.h>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/tensor_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const loud =
      google::protobuf::SetLogHandler(nullptr);  // it tells of every bad string
  static_cast<void>(loud);
  tensorflow::TensorProto proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const weft::TensorProtoLimits limits = {.broadcast_bytes = 1 << 20};
  weft::StatusOr<weft::Tensor> tensor = weft::TensorFromProto(proto, limits);
  if (!tensor.ok()) return 0;
  tensorflow::TensorProto again;
  if (!weft::TensorToProto(*tensor, &again).ok()) abort();
  weft::StatusOr<weft::Tensor> back = weft::TensorFromProto(again, limits);
  if (!back.ok() || back->shape() != tensor->shape() || back->dtype() != tensor->dtype()) abort();
  tensor->ToString();
  return 0;
}
