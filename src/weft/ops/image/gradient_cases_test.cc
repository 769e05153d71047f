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
  const Tensor colors = Fill<double>({3, 4, 3}, 0.1, 0.9, 7);
  cases.push_back({"RGBToHSV", {colors}, {{"T", DType::kDouble}}});
  // Away from whole pixels, where the slope of boxes jumps.
  const std::vector<float> corners = {0.13f, 0.17f, 0.79f, 0.83f};
  const Tensor boxes = Make<float>({1, 4}, corners);
  cases.push_back({"CropAndResize",
                   {pictures, boxes, Tensor::Vector<int32_t>({1}), Tensor::Vector<int32_t>({2, 2})},
                   {},
                   2});
  cases.push_back({"ExtractImagePatches",
                   {Between({2, 5, 4, 2})},
                   {{"ksizes", AttrValue::IntList{1, 3, 2, 1}},
                    {"strides", AttrValue::IntList{1, 2, 1, 1}},
                    {"rates", AttrValue::IntList{1, 1, 2, 1}},
                    {"padding", "SAME"}}});
  cases.push_back({"ExtractVolumePatches",
                   {Between({2, 3, 4, 3, 2})},
                   {{"ksizes", AttrValue::IntList{1, 2, 2, 2, 1}},
                    {"strides", AttrValue::IntList{1, 1, 2, 1, 1}},
                    {"padding", "VALID"}}});
  cases.push_back(
      {"ScaleAndTranslate",
       {pictures, size, Tensor::Vector<float>({1.4f, 0.8f}), Tensor::Vector<float>({0.3f, -0.2f})},
       {{"kernel_type", "triangle"}},
       1,
       "",
       -1,
       {2, 3}});
  // TensorFlow's gradient is exact for transformations that only move pixels: here the pictures are
  // shifted.
  for (const char* op : {"ImageProjectiveTransformV2", "ImageProjectiveTransformV3"}) {
    std::vector<TestInput> inputs = {pictures, Make<float>({1, 8}, {1, 0, 1, 0, 1, -1, 0, 0}),
                                     Tensor::Vector<int32_t>({3, 4})};
    const bool has_value = std::string(op).back() == '3';
    if (has_value) inputs.push_back(Tensor::Scalar<float>(0));
    std::vector<int> not_tried = {1};
    if (has_value) not_tried.push_back(3);
    cases.push_back({op, inputs, {{"interpolation", "NEAREST"}}, 1, "", -1, not_tried});
  }
  return cases;
}

}  // namespace weft::ops::testing
