// SPDX-License-Identifier: Apache-2.0
// Pictures with the outlines of boxes drawn into them.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"

namespace weft::ops::image::draw_boxes {
namespace {

using Color = std::vector<float>;

std::vector<Color> StandardColors(int64_t channels) {
  std::vector<Color> colors = {{1, 1, 0, 1},     {0, 0, 1, 1},     {1, 0, 0, 1},   {0, 1, 0, 1},
                               {0.5, 0, 0.5, 1}, {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1},
                               {0, 1, 1, 1},     {1, 0, 1, 1}};
  if (channels == 1) {
    for (Color& color : colors) color[0] = 1;
  }
  return colors;
}

StatusOr<std::vector<Color>> ColorsOf(const KernelContext& c, int64_t channels) {
  if (c.num_inputs() < 3) return StandardColors(channels);
  const Tensor& given = c.input(2);
  if (given.rank() != 2) {
    return InvalidArgument("colors must be a 2-D matrix", given.shape().ToString());
  }
  if (given.dim(1) < channels) {
    return InvalidArgument("colors must have equal or more channels than the image provided: ",
                           given.shape().ToString());
  }
  if (given.num_elements() == 0) return StandardColors(channels);
  std::vector<Color> colors;
  for (int64_t i = 0; i < given.dim(0); ++i) {
    const float* row = given.data<float>() + i * given.dim(1);
    colors.emplace_back(row, row + channels);
  }
  return colors;
}

// One picture [height, width, channels].
template <typename T>
struct Canvas {
  T* pixels;
  int64_t height, width, channels;

  void Paint(int64_t y, int64_t x, const Color& color) const {
    T* to = pixels + (y * width + x) * channels;
    for (int64_t k = 0; k < channels; ++k) to[k] = static_cast<T>(color[static_cast<size_t>(k)]);
  }

  // The outline of [top, left, bottom, right] in fractions, as far as it lies in the picture. A box
  // that is turned around, or wholly outside, is not drawn.
  void Draw(const float* box, const Color& color) const {
    const auto place = [](float fraction, int64_t size) {
      const float at = fraction * static_cast<float>(size - 1);
      // What no picture has becomes a place outside of all of them.
      if (!(at > -1e9f)) return int64_t{-1000000000};
      return at < 1e9f ? static_cast<int64_t>(at) : int64_t{1000000000};
    };
    const int64_t top = place(box[0], height), left = place(box[1], width),
                  bottom = place(box[2], height), right = place(box[3], width);
    if (top > bottom || left > right || top >= height || bottom < 0 || left >= width || right < 0)
      return;
    const int64_t first_x = std::max<int64_t>(left, 0), last_x = std::min(right, width - 1);
    const int64_t first_y = std::max<int64_t>(top, 0), last_y = std::min(bottom, height - 1);
    for (int64_t x = first_x; x <= last_x; ++x) {
      if (top >= 0) Paint(top, x, color);
      if (bottom < height) Paint(bottom, x, color);
    }
    for (int64_t y = first_y; y <= last_y; ++y) {
      if (left >= 0) Paint(y, left, color);
      if (right < width) Paint(y, right, color);
    }
  }
};

class DrawKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &images = c.input(0), &boxes = c.input(1);
    if (images.rank() != 4) {
      return InvalidArgument("The rank of the images should be 4, got ", images.shape().ToString());
    }
    if (boxes.rank() != 3) {
      return InvalidArgument("The rank of the boxes tensor should be 3, got ",
                             boxes.shape().ToString());
    }
    if (images.dim(0) != boxes.dim(0)) {
      return InvalidArgument("The batch sizes should be the same: ", images.dim(0), " and ",
                             boxes.dim(0));
    }
    const int64_t channels = images.dim(3);
    if (channels != 1 && channels != 3 && channels != 4) {
      return InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got ",
                             channels);
    }
    if (boxes.dim(2) != 4) {
      return InvalidArgument("The size of the third dimension of the box must be 4. Received: ",
                             boxes.dim(2));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Color> colors, ColorsOf(c, channels));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, images.shape()));
    CopyElements(images, 0, images.num_elements(), out, 0);
    const int64_t height = images.dim(1), width = images.dim(2);
    if (height == 0 || width == 0) return absl::OkStatus();
    VisitDType(out->dtype(), TypeList<float, Half>(), [&]<typename T>() {
      for (int64_t n = 0; n < images.dim(0); ++n) {
        const Canvas<T> canvas{out->data<T>() + n * height * width * channels, height, width,
                               channels};
        for (int64_t i = 0; i < boxes.dim(1); ++i) {
          canvas.Draw(boxes.data<float>() + (n * boxes.dim(1) + i) * 4,
                      colors[static_cast<size_t>(i) % colors.size()]);
        }
      }
    });
    return absl::OkStatus();
  }
};

Status DrawnShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape images, c.WithRank(0, 4));
  c.set_output(0, std::move(images));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool has_colors : {false, true}) {
    OpSpec spec(has_colors ? "DrawBoundingBoxesV2" : "DrawBoundingBoxes");
    spec.Doc(
            "Pictures [batch, height, width, channels] with the outlines of boxes.\n"
            "Boxes are [top, left, bottom, right] in fractions of the sides; colors repeat.")
        .Input("images: T")
        .Input("boxes: float");
    if (has_colors) spec.Input("colors: float");
    spec.Output("output: T")
        .Attr("T: {float, half} = DT_FLOAT")
        .Shape(DrawnShape)
        .NoGradient()
        .Kernel(MakeKernel<DrawKernel>());
    catalogue.Add(std::move(spec));
  }
}

}  // namespace weft::ops::image::draw_boxes
