// SPDX-License-Identifier: Apache-2.0
// Where an index goes in a random order of all of them, without making the order.
#include <algorithm>
#include <vector>

#include "weft/data/index_permutation.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::random::index_shuffle {
namespace {

using data::IndexPermutation;

class IndexShuffleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto rounds = c.AttrOr<int64_t>("rounds", 4);
    constexpr int64_t kMost = 1 << 16;
    if (rounds < 4 || rounds > kMost || rounds % 2 != 0) {
      return InvalidArgument("rounds must be an even number of at least 4 and at most ", kMost,
                             ", got ", rounds);
    }
    return std::make_unique<IndexShuffleKernel>(rounds);
  }
  explicit IndexShuffleKernel(int64_t rounds) : rounds_(rounds) {}

  Status Compute(KernelContext& c) override {
    const Tensor index = c.input(0), seed = c.input(1), most = c.input(2);
    const int64_t count =
        std::max({index.num_elements(), most.num_elements(), seed.num_elements() / 3});
    const auto fits = [count](const Tensor& t) {
      return t.rank() == 0 || (t.rank() == 1 && t.dim(0) == count);
    };
    if (!fits(index)) return InvalidArgument("Index must be a scalar or vector.");
    const bool one_seed = seed.rank() == 1 && seed.dim(0) == 3;
    if (!one_seed && !(seed.rank() == 2 && seed.dim(0) == count && seed.dim(1) == 3)) {
      return InvalidArgument("Seed must be a vector of size [3] or a matrix of size [", count,
                             ",3] but got ", seed.shape().ToString(), ".");
    }
    if (!fits(most)) {
      return InvalidArgument(
          "Maxval must be a scalar or a vector of the same size as index but got ",
          most.shape().ToString());
    }
    const bool is_scalar = index.rank() == 0 && seed.rank() == 1 && most.rank() == 0;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, is_scalar ? Shape() : Shape{count}));
    std::vector<int64_t> found;
    for (int64_t i = 0; i < count; ++i) {
      IndexPermutation::Key key;
      for (int k = 0; k < 3; ++k) {
        key[k] = static_cast<uint32_t>(IndexAt(seed, (one_seed ? 0 : 3 * i) + k));
      }
      const auto at = static_cast<uint64_t>(IndexAt(index, index.rank() == 0 ? 0 : i));
      const auto last = static_cast<uint64_t>(IndexAt(most, most.rank() == 0 ? 0 : i));
      if (at > last) return InvalidArgument("index ", at, " is beyond max_index ", last);
      found.push_back(static_cast<int64_t>(IndexPermutation(key, last, rounds_)(at)));
    }
    return StoreIndices(found, out);
  }

 private:
  const int64_t rounds_;
};

Status IndexShuffleShape(ShapeContext& c) {
  const PartialShape &index = c.input(0), &seed = c.input(1), &most = c.input(2);
  if (!index.known_rank() || !seed.known_rank() || !most.known_rank()) return shapes::Unknown(c);
  if (index.rank() > 1 || seed.rank() < 1 || seed.rank() > 2 || most.rank() > 1) {
    return InvalidArgument("index and max_index must be scalars or vectors, seed a vector or a ",
                           "matrix, got ", index.ToString(), ", ", most.ToString(), " and ",
                           seed.ToString());
  }
  if (index.rank() == 0 && seed.rank() == 1 && most.rank() == 0) {
    c.set_output(0, Shape());
  } else {
    c.set_output(0, PartialShape({index.rank() == 1  ? index.dim(0)
                                  : most.rank() == 1 ? most.dim(0)
                                                     : seed.dim(0)}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("RandomIndexShuffle")
          .Doc("Where `index` is in a random order of 0 to max_index that the seed says.\n"
               "Any of the three may be several. InvalidArgument for an index beyond max_index.")
          .Input("index: dtype")
          .Input("seed: Tseed")
          .Input("max_index: dtype")
          .Output("output: dtype")
          .Attr("rounds: int = 4")
          .Attr("dtype: {int32, uint32, int64, uint64}")
          .Attr("Tseed: {int32, uint32, int64, uint64}")
          .Shape(IndexShuffleShape)
          .NoGradient()
          .Kernel(MakeKernel<IndexShuffleKernel>()));
}

}  // namespace weft::ops::random::index_shuffle
