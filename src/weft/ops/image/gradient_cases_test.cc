// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {

std::vector<GradientCase> ImageGradientCases() {
  std::vector<GradientCase> cases;
  const Tensor pictures = Fill<float>({2, 3, 4, 2}, -1, 1, 1);
  const Tensor size = Tensor::Vector<int32_t>({5, 3});
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    cases.push_back({op, {pictures, size}});
    cases.push_back({op, {pictures, size}, {{"half_pixel_centers", true}}});
  }
  // Away from whole pixels, where the slope of boxes jumps.
  const std::vector<float> corners = {0.13f, 0.17f, 0.79f, 0.83f};
  const Tensor boxes = Make<float>({1, 4}, corners);
  cases.push_back({"CropAndResize",
                   {pictures, boxes, Tensor::Vector<int32_t>({1}), Tensor::Vector<int32_t>({2, 2})},
                   {},
                   2});
  return cases;
}

}  // namespace weft::ops::testing
