// SPDX-License-Identifier: Apache-2.0
// Rows in random order.
#include <numeric>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/philox_kernel.h"

namespace weft::ops::random::random_shuffle {
namespace {

class RandomShuffleKernel final : public OpKernel {
 public:
  explicit RandomShuffleKernel(KernelConstruction& k) : generator_(k) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.num_elements() <= 1 || in.dim(0) <= 1) {
      c.SetOutput(0, in);
      return absl::OkStatus();
    }
    const int64_t rows = in.dim(0);
    if (rows >= int64_t{1} << 31) {
      return Unimplemented("Shuffling of ", rows, " rows: at most 2^31 - 1 are supported");
    }
    // Each place swaps with one that is not settled yet.
    PhiloxWords words(generator_.Reserve((rows - 1 + 3) / 4));
    std::vector<int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i + 1 < rows; ++i) {
      std::swap(order[i], order[i + words.Next() % static_cast<uint32_t>(rows - i)]);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    const int64_t row = in.num_elements() / rows;
    if (in.dtype() == DType::kString) {
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(in.data<std::string>() + order[i] * row, row,
                    out->data<std::string>() + i * row);
      }
      return absl::OkStatus();
    }
    const size_t bytes = row * DTypeSize(in.dtype());
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(out->bytes() + i * bytes, in.bytes() + order[i] * bytes, bytes);
    }
    return absl::OkStatus();
  }

 private:
  GuardedPhilox generator_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RandomShuffle")
                    .Doc("The rows (slices along dimension 0) of a tensor in random order.")
                    .Input("value: T")
                    .Output("output: T")
                    .Attr("seed: int = 0")
                    .Attr("seed2: int = 0")
                    .Attr("T: type")
                    .Stateful()
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel({.types = {{"T",
                                        {DType::kFloat, DType::kDouble, DType::kHalf,
                                         DType::kBfloat16, DType::kInt32, DType::kInt64,
                                         DType::kUint8, DType::kInt8, DType::kInt16, DType::kUint16,
                                         DType::kUint32, DType::kUint64, DType::kBool,
                                         DType::kString, DType::kComplex64, DType::kComplex128}}},
                             .factory = MakeKernel<RandomShuffleKernel>()}));
}

}  // namespace weft::ops::random::random_shuffle
