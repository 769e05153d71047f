// SPDX-License-Identifier: Apache-2.0
// Parts of pictures, each brought to one size, and the derivatives.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "weft/ops/elements.h"
#include "weft/ops/image/sampling_kernel.h"

namespace weft::ops::image::crop_and_resize {
namespace {

// Where a pixel of a crop lies on one side of the picture: between two pixels, or at one.
struct Place {
  int64_t low;
  int64_t high;
  float lerp;
};

// One side of a crop: from `begin` to `end`, in parts of the picture's side of `in` pixels.
struct Side {
  float begin, end;
  int64_t in, out;

  float span() const { return static_cast<float>(in - 1); }
  // Nothing where it lies outside.
  std::optional<Place> At(int64_t i) const {
    const float scale = out > 1 ? (end - begin) * span() / static_cast<float>(out - 1) : 0;
    const float place =
        out > 1 ? begin * span() + static_cast<float>(i) * scale : 0.5f * (begin + end) * span();
    if (!(place >= 0 && place <= span())) return std::nullopt;
    const float low = std::floor(place);
    return Place{static_cast<int64_t>(low), static_cast<int64_t>(std::ceil(place)), place - low};
  }
  // How the place of pixel i follows the beginning and the end.
  std::pair<float, float> Slopes(int64_t i) const {
    if (out <= 1) return {0.5f * span(), 0.5f * span()};
    const float ratio = span() / static_cast<float>(out - 1) * static_cast<float>(i);
    return {span() - ratio, ratio};
  }
};

struct Crop {
  int64_t picture;
  Side y, x;
};

// The crops that `boxes` [n, 4] of the pictures `indices` [n] say. InvalidArgument where shapes do
// not fit or there is no such picture.
StatusOr<std::vector<Crop>> CropsOf(const Tensor& boxes, const Tensor& indices,
                                    const PictureSizes& from, int64_t height, int64_t width) {
  if (boxes.num_elements() == 0 && indices.num_elements() == 0) return std::vector<Crop>();
  if (boxes.rank() != 2 || boxes.dim(1) != 4) {
    return InvalidArgument("boxes must be 2-D with 4 columns, got shape ",
                           boxes.shape().ToString());
  }
  if (indices.rank() != 1 || indices.dim(0) != boxes.dim(0)) {
    return InvalidArgument("box_index has incompatible shape ", indices.shape().ToString(),
                           " for boxes of shape ", boxes.shape().ToString());
  }
  std::vector<Crop> crops;
  for (int64_t i = 0; i < boxes.dim(0); ++i) {
    const int64_t picture = indices.data<int32_t>()[i];
    if (picture < 0 || picture >= from.batch) {
      return InvalidArgument("box_index has values outside [0, batch_size): ", picture, " of ",
                             from.batch);
    }
    const float* box = boxes.data<float>() + 4 * i;
    if (!std::all_of(box, box + 4, [](float edge) { return std::isfinite(edge); })) {
      return InvalidArgument("Boxes contains at least one element that is not finite: box ", i);
    }
    crops.push_back(
        {picture, {box[0], box[2], from.height, height}, {box[1], box[3], from.width, width}});
  }
  return crops;
}

class CropKernel : public OpKernel {
 public:
  explicit CropKernel(KernelConstruction& c)
      : is_nearest_(c.AttrOr<std::string>("method", "bilinear") == "nearest"),
        outside_(c.AttrOr<float>("extrapolation_value", 0.0f)) {}

 protected:
  int64_t NearestOf(const Place& p) const {
    return static_cast<int64_t>(std::round(static_cast<float>(p.low) + p.lerp));
  }
  const bool is_nearest_;
  const float outside_;
};

class CropAndResizeKernel final : public CropKernel {
 public:
  using CropKernel::CropKernel;
  Status Compute(KernelContext& c) override {
    const Tensor images = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const PictureSizes from, PictureSizes::Of(images));
    WEFT_ASSIGN_OR_RETURN(const auto size, SizeOf(c.input(3)));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Crop> crops,
                          CropsOf(c.input(1), c.input(2), from, size.first, size.second));
    const auto count = static_cast<int64_t>(crops.size());
    WEFT_ASSIGN_OR_RETURN(
        Tensor * out, c.AllocateOutput(0, Shape{count, size.first, size.second, from.channels}));
    const int64_t each = size.first * size.second * from.channels;
    VisitDType(images.dtype(), PixelTypes(), [&]<typename T>() {
      c.ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Write(images.data<T>(), from, crops[i], out->data<float>() + i * each);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Write(const T* images, const PictureSizes& from, const Crop& crop, float* out) const {
    for (int64_t row = 0; row < crop.y.out; ++row) {
      const std::optional<Place> y = crop.y.At(row);
      for (int64_t column = 0; column < crop.x.out; ++column) {
        const std::optional<Place> x = crop.x.At(column);
        for (int64_t k = 0; k < from.channels; ++k) {
          *out++ = y && x ? Mixed(images, from, crop.picture, *y, *x, k) : outside_;
        }
      }
    }
  }
  template <typename T>
  float Mixed(const T* images, const PictureSizes& from, int64_t picture, const Place& y,
              const Place& x, int64_t k) const {
    const auto at = [&](int64_t row, int64_t column) {
      return AsFloat(
          images[((picture * from.height + row) * from.width + column) * from.channels + k]);
    };
    if (is_nearest_) return at(NearestOf(y), NearestOf(x));
    const float top = at(y.low, x.low) + (at(y.low, x.high) - at(y.low, x.low)) * x.lerp;
    const float bottom = at(y.high, x.low) + (at(y.high, x.high) - at(y.high, x.low)) * x.lerp;
    return top + (bottom - top) * y.lerp;
  }
};

// InvalidArgument unless there is a gradient for each crop.
Status CheckGradients(const Tensor& gradients, const std::vector<Crop>& crops) {
  if (gradients.dim(0) == static_cast<int64_t>(crops.size())) return absl::OkStatus();
  return InvalidArgument("boxes and grads have incompatible shape: ", crops.size(),
                         " boxes and gradients of shape ", gradients.shape().ToString());
}

class GradImageKernel final : public CropKernel {
 public:
  using CropKernel::CropKernel;
  Status Compute(KernelContext& c) override {
    const Tensor gradients = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const PictureSizes of_crops, PictureSizes::Of(gradients));
    if (c.input(3).rank() != 1 || c.input(3).dim(0) != 4) {
      return InvalidArgument("image_size must be 1-D with 4 elements, got shape ",
                             c.input(3).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(3), "image_size"));
    const PictureSizes to{shape.dim(0), shape.dim(1), shape.dim(2), shape.dim(3)};
    if (to.height < 1 || to.width < 1 || to.channels != of_crops.channels) {
      return InvalidArgument("image_size does not fit the gradients: ", shape.ToString(), " and ",
                             gradients.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Crop> crops,
                          CropsOf(c.input(1), c.input(2), to, of_crops.height, of_crops.width));
    WEFT_RETURN_IF_ERROR(CheckGradients(gradients, crops));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    VisitDType(out->dtype(), TypeList<float, Half, double>(), [&]<typename T>() {
      const float* from = gradients.data<float>();
      for (const Crop& crop : crops) from = Add(from, crop, to, out->data<T>());
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  const float* Add(const float* from, const Crop& crop, const PictureSizes& to, T* images) const {
    for (int64_t row = 0; row < crop.y.out; ++row) {
      const std::optional<Place> y = crop.y.At(row);
      for (int64_t column = 0; column < crop.x.out; ++column, from += to.channels) {
        const std::optional<Place> x = crop.x.At(column);
        if (!y || !x) continue;
        const auto add = [&](int64_t at_y, int64_t at_x, float by_y, float by_x) {
          T* pixel = images + ((crop.picture * to.height + at_y) * to.width + at_x) * to.channels;
          for (int64_t k = 0; k < to.channels; ++k) {
            pixel[k] = static_cast<T>(pixel[k] + static_cast<T>(by_x * (by_y * from[k])));
          }
        };
        if (is_nearest_) {
          add(NearestOf(*y), NearestOf(*x), 1, 1);
          continue;
        }
        add(y->low, x->low, 1 - y->lerp, 1 - x->lerp);
        add(y->low, x->high, 1 - y->lerp, x->lerp);
        add(y->high, x->low, y->lerp, 1 - x->lerp);
        add(y->high, x->high, y->lerp, x->lerp);
      }
    }
    return from;
  }
};

class GradBoxesKernel final : public CropKernel {
 public:
  using CropKernel::CropKernel;
  Status Compute(KernelContext& c) override {
    const Tensor gradients = c.input(0), images = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const PictureSizes of_crops, PictureSizes::Of(gradients));
    WEFT_ASSIGN_OR_RETURN(const PictureSizes from, PictureSizes::Of(images));
    if (from.channels != of_crops.channels) {
      return InvalidArgument("image and grads have incompatible depth: ", from.channels, " and ",
                             of_crops.channels);
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Crop> crops,
                          CropsOf(c.input(2), c.input(3), from, of_crops.height, of_crops.width));
    WEFT_RETURN_IF_ERROR(CheckGradients(gradients, crops));
    const auto count = static_cast<int64_t>(crops.size());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{count, 4}));
    ClearElements(out, 0, out->num_elements());
    VisitDType(images.dtype(), PixelTypes(), [&]<typename T>() {
      const float* gradient = gradients.data<float>();
      for (int64_t i = 0; i < count; ++i) {
        gradient = Add(gradient, images.data<T>(), from, crops[i], out->data<float>() + 4 * i);
      }
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static const float* Add(const float* gradient, const T* images, const PictureSizes& from,
                          const Crop& crop, float* box) {
    for (int64_t row = 0; row < crop.y.out; ++row) {
      const std::optional<Place> y = crop.y.At(row);
      for (int64_t column = 0; column < crop.x.out; ++column, gradient += from.channels) {
        const std::optional<Place> x = crop.x.At(column);
        if (!y || !x) continue;
        float by_y = 0, by_x = 0;
        for (int64_t k = 0; k < from.channels; ++k) {
          const auto at = [&](int64_t at_y, int64_t at_x) {
            return AsFloat(
                images[((crop.picture * from.height + at_y) * from.width + at_x) * from.channels +
                       k]);
          };
          const float a = at(y->low, x->low), b = at(y->low, x->high);
          const float c = at(y->high, x->low), d = at(y->high, x->high);
          by_y += gradient[k] * ((1 - x->lerp) * (c - a) + x->lerp * (d - b));
          by_x += gradient[k] * ((1 - y->lerp) * (b - a) + y->lerp * (d - c));
        }
        const auto [y_begin, y_end] = crop.y.Slopes(row);
        const auto [x_begin, x_end] = crop.x.Slopes(column);
        box[0] += by_y * y_begin;
        box[1] += by_x * x_begin;
        box[2] += by_y * y_end;
        box[3] += by_x * x_end;
      }
    }
    return gradient;
  }
};

Status CropShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const PartialShape boxes, c.WithRank(1, 2));
  PartialShape shape({boxes.dim(0), -1, -1, images.dim(3)});
  const Tensor* size = c.constant(3);
  for (int d = 0; d < 2 && size != nullptr && size->num_elements() == 2; ++d) {
    shape.SetDim(1 + d, std::max<int64_t>(-1, size->data<int32_t>()[d]));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string method, c.Attr<std::string>("method"));
  const DType dtype = c.node().input_type(0).dtype;
  if (IsFloating(dtype)) {
    c.set_input(0, c.Op("CropAndResizeGradImage",
                        {c.gradient(), c.input(1), c.input(2), c.Op("Shape", {c.input(0)})},
                        {{"T", dtype}, {"method", method}}));
  }
  c.set_input(1,
              c.Op("CropAndResizeGradBoxes", {c.gradient(), c.input(0), c.input(1), c.input(2)}));
  return absl::OkStatus();
}

constexpr char kTypes[] = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}";

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("CropAndResize")
                    .Doc("The parts of pictures that boxes say, in the size crop_size.\n"
                         "A box is [y1, x1, y2, x2] in parts of the picture, of which box_ind says "
                         "the number. What lies outside becomes extrapolation_value.")
                    .Input("image: T")
                    .Input("boxes: float")
                    .Input("box_ind: int32")
                    .Input("crop_size: int32")
                    .HostInput("crop_size")
                    .Output("crops: float")
                    .Attr(kTypes)
                    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
                    .Attr("extrapolation_value: float = 0")
                    .Shape(CropShape)
                    .Gradient(Gradient)
                    .Kernel(MakeKernel<CropAndResizeKernel>()));
  catalogue.Add(OpSpec("CropAndResizeGradImage")
                    .Doc("The gradient of CropAndResize's pictures, of the size image_size.")
                    .Input("grads: float")
                    .Input("boxes: float")
                    .Input("box_ind: int32")
                    .Input("image_size: int32")
                    .HostInput("image_size")
                    .Output("output: T")
                    .Attr("T: {float, half, double}")
                    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(3));
                      c.set_output(0, std::move(shape));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<GradImageKernel>()));
  catalogue.Add(OpSpec("CropAndResizeGradBoxes")
                    .Doc("The gradient of CropAndResize's boxes.")
                    .Input("grads: float")
                    .Input("image: T")
                    .Input("boxes: float")
                    .Input("box_ind: int32")
                    .Output("output: float")
                    .Attr(kTypes)
                    .Attr("method: {'bilinear'} = 'bilinear'")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(PartialShape boxes, c.WithRank(2, 2));
                      c.set_output(0, std::move(boxes));
                      return absl::OkStatus();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<GradBoxesKernel>()));
}

}  // namespace weft::ops::image::crop_and_resize
