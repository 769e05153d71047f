// SPDX-License-Identifier: Apache-2.0
// Bytes as numbers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::decode_raw {
namespace {

using Types = TypeList<Half, float, double, int32_t, uint16_t, uint8_t, int16_t, int8_t, int64_t,
                       Complex64, Complex128, bool, Bfloat16>;

class DecodeRawKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<DecodeRawKernel>(c.AttrOr("little_endian", true));
  }
  explicit DecodeRawKernel(bool little_endian) : little_endian_(little_endian) {}

  Status Compute(KernelContext& c) override {
    const Tensor& texts = c.input(0);
    const std::string* first = texts.data<std::string>();
    const size_t bytes = texts.num_elements() > 0 ? first->size() : 0;
    for (int64_t i = 1; i < texts.num_elements(); ++i) {
      if (first[i].size() == bytes) continue;
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but element ", i, " has size ",
          first[i].size(), " != ", bytes);
    }
    const DType dtype = c.output_dtype(0);
    const size_t size = DTypeSize(dtype);
    if (bytes % size != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", bytes, " that is not a multiple of ",
                             size, ", the size of ", DTypeName(dtype));
    }
    Shape shape = texts.shape();
    shape.AddDim(static_cast<int64_t>(bytes / size));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    auto* to = reinterpret_cast<char*>(out->bytes());
    for (int64_t i = 0; i < texts.num_elements() && bytes > 0; ++i, to += bytes) {
      std::memcpy(to, first[i].data(), bytes);
      if (!little_endian_) Swap(to, bytes, IsComplex(dtype) ? size / 2 : size);
    }
    return absl::OkStatus();
  }

 private:
  static void Swap(char* numbers, size_t bytes, size_t size) {
    for (size_t i = 0; i < bytes; i += size) std::reverse(numbers + i, numbers + i + size);
  }

  const bool little_endian_;
};

Status DecodeRawShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  if (shape.known_rank()) shape.AddDim(-1);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("DecodeRaw")
          .Doc("The bytes of each string as numbers of out_type, along a new last dimension.\n"
               "InvalidArgument if the strings differ in length, or hold no whole numbers.")
          .Input("bytes: string")
          .Output("output: out_type")
          .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                "complex64, complex128, bool, bfloat16}")
          .Attr("little_endian: bool = true")
          .Shape(DecodeRawShape)
          .NoGradient()
          .Kernel({.types = {{"out_type", DTypesOf(Types())}},
                   .factory = MakeKernel<DecodeRawKernel>()}));
}

}  // namespace weft::ops::io::decode_raw
