// SPDX-License-Identifier: Apache-2.0
// Rows in random order.
#include <numeric>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/random/philox_kernel.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops::random::random_shuffle {
namespace {

// Each place swaps with one that is not settled yet. `reserve(steps)` gives the generator.
template <typename Reserve>
Status Shuffle(KernelContext& c, const Reserve& reserve) {
  const Tensor in = c.input(0);
  if (in.num_elements() <= 1 || in.dim(0) <= 1) {
    c.SetOutput(0, in);
    return absl::OkStatus();
  }
  const int64_t rows = in.dim(0);
  if (rows >= int64_t{1} << 31) {
    return Unimplemented("Shuffling of ", rows, " rows: at most 2^31 - 1 are supported");
  }
  PhiloxWords words(reserve((rows - 1 + 3) / 4));
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i + 1 < rows; ++i) {
    std::swap(order[i], order[i + words.Next() % static_cast<uint32_t>(rows - i)]);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const int64_t row = in.num_elements() / rows;
  for (int64_t i = 0; i < rows; ++i) CopyElements(in, order[i] * row, row, out, i * row);
  return absl::OkStatus();
}

class RandomShuffleKernel final : public OpKernel {
 public:
  explicit RandomShuffleKernel(KernelConstruction& k) : generator_(k) {}
  Status Compute(KernelContext& c) override {
    return Shuffle(c, [this](uint64_t steps) { return generator_.Reserve(steps); });
  }

 private:
  GuardedPhilox generator_;
};

class StatelessShuffleKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Philox start, GeneratorOfKey(c.input(1), c.input(2), c.input(3)));
    return Shuffle(c, [&](uint64_t) { return start; });
  }
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
  catalogue.Add(OpSpec("StatelessShuffle")
                    .Doc("The rows of a tensor in an order that a key and a counter say.\n"
                         "alg: 1 (Philox) or 3 (any).")
                    .Input("value: T")
                    .Input("key: uint64")
                    .Input("counter: uint64")
                    .Input("alg: int32")
                    .HostInput("alg")
                    .Output("output: T")
                    .Attr("T: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<StatelessShuffleKernel>()));
}

}  // namespace weft::ops::random::random_shuffle
