// SPDX-License-Identifier: Apache-2.0
// The centres that lie nearest to points.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::nearest_neighbors {
namespace {

class NearestKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &points = c.input(0), &centers = c.input(1), &k = c.input(2);
    if (points.rank() != 2) return InvalidArgument("Input points should be a matrix.");
    if (centers.rank() != 2) return InvalidArgument("Input centers should be a matrix.");
    if (!k.shape().IsScalar()) return InvalidArgument("Input k should be a scalar.");
    if (points.dim(1) != centers.dim(1)) {
      return InvalidArgument("Dimensions of points and centers must match: ", points.dim(1),
                             " vs. ", centers.dim(1));
    }
    if (points.dim(0) == 0) return InvalidArgument("Expected points.rows() > 0.");
    if (centers.dim(0) == 0) return InvalidArgument("Expected centers.rows() > 0.");
    if (k.scalar<int64_t>() < 0) {
      return InvalidArgument("k must be a non-negative integer, got ", k.scalar<int64_t>());
    }
    const int64_t count = std::min(k.scalar<int64_t>(), centers.dim(0));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({points.dim(0), count}));
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * distances, c.AllocateOutput(1, shape));
    c.ParallelFor(points.dim(0), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Find(points, centers, i, count, indices->data<int64_t>() + i * count,
             distances->data<float>() + i * count);
      }
    });
    return absl::OkStatus();
  }

 private:
  static void Find(const Tensor& points, const Tensor& centers, int64_t i, int64_t count,
                   int64_t* indices, float* distances) {
    const int64_t width = points.dim(1);
    const float* point = points.data<float>() + i * width;
    std::vector<std::pair<float, int64_t>> all;
    for (int64_t j = 0; j < centers.dim(0); ++j) {
      const float* center = centers.data<float>() + j * width;
      float distance = 0;
      for (int64_t d = 0; d < width; ++d) {
        distance += (point[d] - center[d]) * (point[d] - center[d]);
      }
      all.emplace_back(distance, j);
    }
    // NaN compares with nothing: it counts as far away.
    const auto nearer = [](const auto& a, const auto& b) {
      const bool a_is_number = a.first == a.first, b_is_number = b.first == b.first;
      if (a_is_number != b_is_number) return a_is_number;
      return a_is_number && a.first != b.first ? a.first < b.first : a.second < b.second;
    };
    std::partial_sort(all.begin(), all.begin() + count, all.end(), nearer);
    for (int64_t n = 0; n < count; ++n) {
      distances[n] = all[static_cast<size_t>(n)].first;
      indices[n] = all[static_cast<size_t>(n)].second;
    }
  }
};

Status NearestShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape points, c.WithRank(0, 2));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 2).status());
  c.set_output(0, PartialShape({points.dim(0), -1}));
  c.set_output(1, PartialShape({points.dim(0), -1}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("NearestNeighbors")
                    .Doc("For each point the k nearest centres, nearest first, and their squared "
                         "distances.")
                    .Input("points: float")
                    .Input("centers: float")
                    .Input("k: int64")
                    .Output("nearest_center_indices: int64")
                    .Output("nearest_center_distances: float")
                    .Shape(NearestShape)
                    .NoGradient()
                    .Kernel(MakeKernel<NearestKernel>()));
}

}  // namespace weft::ops::math::nearest_neighbors
