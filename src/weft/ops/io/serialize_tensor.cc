// SPDX-License-Identifier: Apache-2.0
// Tensors as bytes of a TensorProto, and back.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"

#include "weft/kernel/op_spec.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::ops::io::serialize_tensor {
namespace {

constexpr size_t kBytesTold = 300;  // of a tensor that cannot be parsed

class SerializeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(std::string bytes, SerializeTensorProto(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(bytes);
    return absl::OkStatus();
  }
};

class ParseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (!input.shape().IsScalar()) {
      return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                             input.shape().ToString());
    }
    const std::string& serialized = input.scalar<std::string>();
    StatusOr<Tensor> parsed = ParseTensorProto(serialized);
    if (!parsed.ok()) {
      return InvalidArgument("Could not parse `serialized` as TensorProto, base64: ",
                             absl::Base64Escape(serialized.substr(0, kBytesTold)), ": ",
                             parsed.status().message());
    }
    Tensor tensor = *std::move(parsed);
    if (tensor.dtype() != c.output_dtype(0)) {
      return InvalidArgument("Type mismatch between parsed tensor (", DTypeName(tensor.dtype()),
                             ") and dtype (", DTypeName(c.output_dtype(0)), ")");
    }
    c.SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SerializeTensor")
                    .Doc("The tensor as bytes of a TensorProto.")
                    .Input("tensor: T")
                    .Output("serialized: string")
                    .Attr("T: type")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SerializeKernel>()));
  catalogue.Add(OpSpec("ParseTensor")
                    .Doc("The tensor that bytes of a TensorProto say.\nInvalidArgument if they are "
                         "malformed or of another type.")
                    .Input("serialized: string")
                    .Output("output: out_type")
                    .Attr("out_type: type")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ParseKernel>()));
}

}  // namespace weft::ops::io::serialize_tensor
