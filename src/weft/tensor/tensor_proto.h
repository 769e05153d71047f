// SPDX-License-Identifier: Apache-2.0
// Tensor <-> tensorflow.TensorProto, for every dtype. Thread-safe; results own their bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace tensorflow {
class ResourceHandleProto;
class TensorProto;
}  // namespace tensorflow

namespace weft {

struct TensorProtoLimits {
  // Most bytes that values which repeat (or stand for zeros) may grow to, nested tensors included.
  // Values that all stand in the message are bounded by the message.
  int64_t broadcast_bytes = int64_t{1} << 30;
};

// Reads tensor_content or the *_val field of the dtype; there the last value repeats until the
// shape is full, and no value means zeros. InvalidArgument says what is
// wrong: dtype, shape, number of bytes or values, a value out of range. Variants become
// EncodedVariant.
StatusOr<Tensor> TensorFromProto(const tensorflow::TensorProto& proto,
                                 const TensorProtoLimits& limits = {},
                                 Allocator& allocator = HostAllocator());

// Replaces what `proto` holds: tensor_content for plain dtypes, else the *_val field.
// InvalidArgument for an uninitialized tensor or one over 2 GB, which protobuf cannot carry;
// Unimplemented for a variant that cannot leave the process.
Status TensorToProto(const Tensor& tensor, tensorflow::TensorProto* proto);

// The same as bytes of the message. InvalidArgument where `bytes` are none.
StatusOr<std::string> SerializeTensorProto(const Tensor& tensor);
StatusOr<Tensor> ParseTensorProto(absl::string_view bytes, const TensorProtoLimits& limits = {},
                                  Allocator& allocator = HostAllocator());

// `object` stays behind: the receiver looks the resource up by its names.
void ResourceHandleToProto(const ResourceHandle& handle, tensorflow::ResourceHandleProto* proto);
StatusOr<ResourceHandle> ResourceHandleFromProto(const tensorflow::ResourceHandleProto& proto);

// A variant as it came over the wire; whoever knows `type_name` decodes it. Encodes as it came.
class EncodedVariant : public VariantValue {
 public:
  EncodedVariant(std::string type_name, std::string metadata, std::vector<Tensor> tensors)
      : type_name_(std::move(type_name)),
        metadata_(std::move(metadata)),
        tensors_(std::move(tensors)) {}
  absl::string_view type_name() const override { return type_name_; }
  StatusOr<std::string> Encode() const override { return metadata_; }
  std::vector<Tensor> EncodeTensors() const override { return tensors_; }
  const std::string& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  const std::string type_name_;
  const std::string metadata_;
  const std::vector<Tensor> tensors_;
};

}  // namespace weft
