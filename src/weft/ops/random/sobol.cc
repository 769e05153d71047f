// SPDX-License-Identifier: Apache-2.0
// SobolSample: points that fill the unit cube evenly.
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/random/sobol_table_kernel.h"

namespace weft::ops::random::sobol {
namespace {

constexpr int kMostDimensions = 21200;  // TensorFlow's

// Points `begin` to `end` of the sequence, whose point 0 (all zeros) is not given.
template <typename T>
void Fill(int64_t begin, int64_t end, int64_t skip, int dim, T* out) {
  const std::vector<std::array<uint32_t, 32>>& directions = SobolDirections();
  std::vector<uint32_t> point(static_cast<size_t>(dim), 0);
  out += begin * dim;
  for (int64_t i = begin; i < end; ++i) {
    // Points come in the order of a Gray code: the number of one differs from that of the one
    // before in one digit.
    const auto number = static_cast<uint32_t>(skip + i + 1);
    const uint32_t before = i == begin ? 0 : (number - 1) ^ ((number - 1) >> 1);
    for (uint32_t changed = before ^ number ^ (number >> 1); changed != 0; changed &= changed - 1) {
      const auto digit = static_cast<size_t>(std::countr_zero(changed));
      for (int j = 0; j < dim; ++j) {
        point[static_cast<size_t>(j)] ^= directions[static_cast<size_t>(j)][digit];
      }
    }
    for (const uint32_t coordinate : point) {
      *out++ = static_cast<T>(coordinate) * static_cast<T>(1.0 / 4294967296.0);
    }
  }
}

class SobolKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    constexpr const char* kNames[] = {"dim", "num_results", "skip"};
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).shape().IsScalar()) continue;
      return InvalidArgument(kNames[i], " must be a scalar, got shape ",
                             c.input(i).shape().ToString());
    }
    const int32_t dim = c.input(0).scalar<int32_t>();
    const int32_t count = c.input(1).scalar<int32_t>();
    const int32_t skip = c.input(2).scalar<int32_t>();
    if (dim < 1) return InvalidArgument("dim must be at least one");
    if (dim > kMostDimensions) return InvalidArgument("dim must be at most ", kMostDimensions);
    if (dim > kSobolDimensions) {
      return Unimplemented("Sobol sequences are here up to ", kSobolDimensions,
                           " dimensions, dim is ", dim);
    }
    if (count < 1) return InvalidArgument("num_results must be at least one");
    if (skip < 0) return InvalidArgument("skip must be non-negative");
    if (count >= std::numeric_limits<int32_t>::max() - skip) {
      return InvalidArgument("num_results+skip must be less than ",
                             std::numeric_limits<int32_t>::max());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{count, dim}));
    VisitDType(out->dtype(), TypeList<float, double>(), [&]<typename T>() {
      T* const to = out->data<T>();
      c.ParallelFor(count, std::max(1, 65536 / dim),
                    [&](int64_t begin, int64_t end) { Fill<T>(begin, end, skip, dim, to); });
    });
    return absl::OkStatus();
  }
};

Status SobolShape(ShapeContext& c) {
  int64_t sizes[2] = {-1, -1};  // num_results, dim
  for (int i = 0; i < 3; ++i) {
    WEFT_RETURN_IF_ERROR(c.WithRank(i, 0).status());
    const Tensor* value = c.constant(i);
    if (value == nullptr || i == 2) continue;
    const int32_t size = value->scalar<int32_t>();
    if (size >= 1) sizes[1 - i] = size;
  }
  c.set_output(0, PartialShape({sizes[0], sizes[1]}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SobolSample")
          .Doc("`num_results` points of `dim` coordinates of the Sobol sequence, from the one "
               "behind `skip` on.\nThey fill the unit cube more evenly than points of chance. "
               "Unimplemented for more than 1,111 dimensions, of which TensorFlow has 21,200.")
          .Input("dim: int32")
          .HostInput("dim")
          .Input("num_results: int32")
          .HostInput("num_results")
          .Input("skip: int32")
          .HostInput("skip")
          .Output("samples: dtype")
          .Attr("dtype: {float, double} = DT_FLOAT")
          .Shape(SobolShape)
          .NoGradient()
          .Kernel(MakeKernel<SobolKernel>()));
}

}  // namespace weft::ops::random::sobol
