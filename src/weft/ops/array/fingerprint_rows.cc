// SPDX-License-Identifier: Apache-2.0
// Hashes of the rows of a tensor.
#include <string>

#include "weft/kernel/op_spec.h"
#include "weft/ops/fingerprint.h"

namespace weft::ops::array::fingerprint_rows {
namespace {

constexpr int64_t kBytes = 8;

class FingerprintKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &data = c.input(0), &method = c.input(1);
    if (method.rank() != 0) {
      return InvalidArgument("`method` should be a scalar string: ", method.shape().ToString());
    }
    if (method.scalar<std::string>() != "farmhash64") {
      return InvalidArgument("Unsupported fingerprint method: ", method.scalar<std::string>());
    }
    if (data.rank() < 1) {
      return InvalidArgument("`data` should have at least one dimension: ",
                             data.shape().ToString());
    }
    const int64_t rows = data.dim(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{rows, kBytes}));
    if (rows == 0) return absl::OkStatus();
    const int64_t width = data.num_elements() / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t value = data.dtype() == DType::kString
                                 ? OfStrings(data, row, width)
                                 : Fingerprint64(Bytes(data, row, width));
      std::memcpy(out->data<uint8_t>() + row * kBytes, &value, kBytes);
    }
    return absl::OkStatus();
  }

 private:
  static absl::string_view Bytes(const Tensor& data, int64_t row, int64_t width) {
    const size_t size = static_cast<size_t>(width) * DTypeSize(data.dtype());
    return {reinterpret_cast<const char*>(data.bytes()) + static_cast<size_t>(row) * size, size};
  }
  // A vector's row is one string; else the hash is of the hashes of the row's strings.
  static uint64_t OfStrings(const Tensor& data, int64_t row, int64_t width) {
    const std::string* const strings = data.data<std::string>() + row * width;
    if (data.rank() == 1) return Fingerprint64(strings[0]);
    std::vector<uint64_t> hashes;
    for (int64_t i = 0; i < width; ++i) hashes.push_back(Fingerprint64(strings[i]));
    return Fingerprint64(absl::string_view(reinterpret_cast<const char*>(hashes.data()),
                                           hashes.size() * sizeof(uint64_t)));
  }
};

Status FingerprintShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const PartialShape data = c.input(0);
  if (data.known_rank() && data.rank() < 1) {
    return InvalidArgument("`data` should have at least one dimension");
  }
  c.set_output(0, PartialShape({data.known_rank() ? data.dim(0) : -1, kBytes}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Fingerprint")
                    .Doc("A hash of eight bytes of each row of `data`.\nmethod: \"farmhash64\".")
                    .Input("data: T")
                    .Input("method: string")
                    .HostInput("method")
                    .Output("fingerprint: uint8")
                    .Attr("T: type")
                    .Shape(FingerprintShape)
                    .NoGradient()
                    .Kernel(MakeKernel<FingerprintKernel>()));
}

}  // namespace weft::ops::array::fingerprint_rows
