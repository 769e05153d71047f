// SPDX-License-Identifier: Apache-2.0
// Bytes as numbers, where strings may be of any length.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::decode_padded_raw {
namespace {

using Types =
    TypeList<Half, float, double, int32_t, uint16_t, uint8_t, int16_t, int8_t, int64_t, Bfloat16>;

class DecodePaddedKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<DecodePaddedKernel>(c.AttrOr("little_endian", true));
  }
  explicit DecodePaddedKernel(bool little_endian) : little_endian_(little_endian) {}

  Status Compute(KernelContext& c) override {
    const Tensor& texts = c.input(0);
    if (!c.input(1).shape().IsScalar()) {
      return InvalidArgument("k must be scalar, got shape ", c.input(1).shape().ToString());
    }
    const int64_t length = c.input(1).scalar<int32_t>();
    const auto size = static_cast<int64_t>(DTypeSize(c.output_dtype(0)));
    if (length <= 0) {
      return InvalidArgument("fixed_length (", length,
                             ") must be greater than or equal to the size of ",
                             DTypeName(c.output_dtype(0)), " (", size, ")");
    }
    if (length % size != 0) {
      return InvalidArgument("fixed_length (", length, ") must be a multiple of the size of ",
                             DTypeName(c.output_dtype(0)), " (", size, ")");
    }
    Dims sizes(texts.shape().dims().begin(), texts.shape().dims().end());
    sizes.push_back(length / size);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    auto* to = reinterpret_cast<char*>(out->bytes());
    for (int64_t i = 0; i < texts.num_elements(); ++i, to += length) {
      const std::string& text = texts.data<std::string>()[i];
      const int64_t used = std::min(length, static_cast<int64_t>(text.size()));
      std::memcpy(to, text.data(), static_cast<size_t>(used));
      std::memset(to + used, 0, static_cast<size_t>(length - used));
      for (int64_t k = 0; !little_endian_ && k < length; k += size) {
        std::reverse(to + k, to + k + size);
      }
    }
    return absl::OkStatus();
  }

 private:
  const bool little_endian_;
};

Status PaddedShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  if (!shape.known_rank()) return shapes::Unknown(c);
  int64_t width = -1;
  if (const Tensor* length = c.constant(1); length != nullptr && length->shape().IsScalar()) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("out_type"));
    const int64_t bytes = length->scalar<int32_t>();
    const auto size = static_cast<int64_t>(DTypeSize(dtype));
    if (bytes > 0 && bytes % size == 0) width = bytes / size;
  }
  shape.AddDim(width);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("DecodePaddedRaw")
          .Doc("The first fixed_length bytes of each string as numbers of out_type, along a new "
               "last dimension; shorter strings are filled up with zeros.\nInvalidArgument unless "
               "fixed_length is above 0 and a multiple of a number's size.")
          .Input("input_bytes: string")
          .Input("fixed_length: int32")
          .HostInput("fixed_length")
          .Output("output: out_type")
          .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                "bfloat16}")
          .Attr("little_endian: bool = true")
          .Shape(PaddedShape)
          .NoGradient()
          .Kernel({.types = {{"out_type", DTypesOf(Types())}},
                   .factory = MakeKernel<DecodePaddedKernel>()}));
}

}  // namespace weft::ops::io::decode_padded_raw
