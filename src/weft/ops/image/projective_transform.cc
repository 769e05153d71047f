// SPDX-License-Identifier: Apache-2.0
// Pictures seen under a projective transformation.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::image::projective_transform {
namespace {

using TransformTypes = TypeList<uint8_t, int32_t, int64_t, Half, Bfloat16, float, double>;

enum class Fill { kConstant, kReflect, kWrap, kNearest };

// Where a place outside of a side lies in it, as TensorFlow maps it.
float MapPlace(Fill fill, float at, int64_t side) {
  const auto size = static_cast<float>(side), last = static_cast<float>(side - 1);
  const auto whole = [](float x) { return std::trunc(x); };
  float in = at;
  if (fill == Fill::kConstant) return at;
  if (fill == Fill::kReflect && side > 1) {
    const float period = 2 * size;
    if (in < 0) {
      in = period * whole(-in / period) + in;
      in = in < -size ? in + period : -in - 1;
    } else if (in > last) {
      in -= period * whole(in / period);
      if (in >= size) in = period - in - 1;
    }
  } else if (fill == Fill::kWrap && side > 1) {
    if (in < 0) {
      in += size * (whole(-in / last) + 1);
    } else if (in > last) {
      in -= size * whole(in / last);
    }
  } else if (fill != Fill::kNearest) {
    in = 0;
  }
  return std::min(std::max(in, 0.0f), last);
}

struct Picture {
  int64_t height, width, channels;
  Fill fill;
  bool is_bilinear;
};

// Pixel (y, x), channel k of the picture at `from`; the fill value outside.
template <typename T>
T At(const Picture& p, const T* from, float y, float x, int64_t k, T fill) {
  if (!(y >= 0 && y < static_cast<float>(p.height) && x >= 0 && x < static_cast<float>(p.width)))
    return fill;
  return from[(static_cast<int64_t>(y) * p.width + static_cast<int64_t>(x)) * p.channels + k];
}

template <typename T>
T Sample(const Picture& p, const T* from, float y, float x, int64_t k, T fill) {
  if (!p.is_bilinear) return At(p, from, std::round(y), std::round(x), k, fill);
  const float top = std::floor(y), left = std::floor(x), bottom = top + 1, right = left + 1;
  const auto value = [&](float row, float column) {
    return static_cast<float>(At(p, from, row, column, k, fill));
  };
  const float above = (right - x) * value(top, left) + (x - left) * value(top, right);
  const float below = (right - x) * value(bottom, left) + (x - left) * value(bottom, right);
  return static_cast<T>((bottom - y) * above + (y - top) * below);
}

// Rows [begin, end) of the output's pixels, counted over the batch.
template <typename T>
void TransformRows(const Picture& p, const Tensor& images, const Tensor& transforms, T fill,
                   int64_t begin, int64_t end, Tensor* out) {
  const int64_t height = out->dim(1), width = out->dim(2);
  T* to = out->data<T>() + begin * width * p.channels;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = row / height;
    const T* from = images.data<T>() + n * p.height * p.width * p.channels;
    const float* m = transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : 8 * n);
    const auto out_y = static_cast<float>(row % height);
    for (int64_t column = 0; column < width; ++column, to += p.channels) {
      const auto out_x = static_cast<float>(column);
      const float scale = m[6] * out_x + m[7] * out_y + 1.0f;
      const bool is_outside = scale == 0;
      float x = 0, y = 0;
      if (!is_outside) {
        x = MapPlace(p.fill, (m[0] * out_x + m[1] * out_y + m[2]) / scale, p.width);
        y = MapPlace(p.fill, (m[3] * out_x + m[4] * out_y + m[5]) / scale, p.height);
      }
      for (int64_t k = 0; k < p.channels; ++k) {
        to[k] = is_outside ? fill : Sample(p, from, y, x, k, fill);
      }
    }
  }
}

class TransformKernel final : public OpKernel {
 public:
  TransformKernel(Fill fill, bool is_bilinear) : fill_(fill), is_bilinear_(is_bilinear) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const auto interpolation, c.Attr<std::string>("interpolation"));
    if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
      return InvalidArgument("Invalid interpolation ", interpolation,
                             ". Supported types: NEAREST, BILINEAR");
    }
    WEFT_ASSIGN_OR_RETURN(const auto mode, c.Attr<std::string>("fill_mode"));
    const std::pair<const char*, Fill> fills[] = {{"REFLECT", Fill::kReflect},
                                                  {"WRAP", Fill::kWrap},
                                                  {"CONSTANT", Fill::kConstant},
                                                  {"NEAREST", Fill::kNearest}};
    for (const auto& [name, fill] : fills) {
      if (mode == name) {
        return std::make_unique<TransformKernel>(fill, interpolation == "BILINEAR");
      }
    }
    return InvalidArgument("Invalid mode ", mode,
                           ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST");
  }

  Status Compute(KernelContext& c) override {
    const Tensor &images = c.input(0), &transforms = c.input(1);
    if (images.rank() != 4) {
      return InvalidArgument("Input images must have rank 4, got ", images.shape().ToString());
    }
    if (transforms.rank() != 2 || transforms.dim(1) != 8 ||
        (transforms.dim(0) != images.dim(0) && transforms.dim(0) != 1)) {
      return InvalidArgument("Input transform should be num_images x 8 or 1 x 8, got ",
                             transforms.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const auto size, SizeOf(c.input(2)));
    float fill_value = 0;
    if (c.num_inputs() > 3) {
      if (c.input(3).rank() != 0) {
        return InvalidArgument("fill_value must be a scalar, got ", c.input(3).shape().ToString());
      }
      fill_value = c.input(3).scalar<float>();
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape,
                          Shape::Make({images.dim(0), size.first, size.second, images.dim(3)}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const Picture p{images.dim(1), images.dim(2), images.dim(3), fill_, is_bilinear_};
    if (out->num_elements() > 0 && images.num_elements() == 0) {
      return InvalidArgument("Input images must not be empty, got ", images.shape().ToString());
    }
    VisitDType(images.dtype(), TransformTypes(), [&]<typename T>() {
      c.ParallelFor(shape.dim(0) * shape.dim(1), 8, [&](int64_t begin, int64_t end) {
        TransformRows(p, images, transforms, static_cast<T>(fill_value), begin, end, out);
      });
    });
    return absl::OkStatus();
  }

 private:
  static StatusOr<std::pair<int64_t, int64_t>> SizeOf(const Tensor& size) {
    if (size.rank() != 1) {
      return InvalidArgument("output shape must be 1-dimensional", size.shape().ToString());
    }
    if (size.dim(0) != 2) {
      return InvalidArgument("output shape must have two elements", size.shape().ToString());
    }
    const int64_t height = IndexAt(size, 0), width = IndexAt(size, 1);
    if (height > 0 && width > 0) return std::pair{height, width};
    return InvalidArgument("output dimensions must be positive, got ", height, " and ", width);
  }

  const Fill fill_;
  const bool is_bilinear_;
};

Status TransformedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 4));
  PartialShape out({in.dim(0), -1, -1, in.dim(3)});
  if (c.constant(2) != nullptr && c.constant(2)->num_elements() == 2) {
    for (const int i : {0, 1}) {
      out.SetDim(1 + i, std::max<int64_t>(-1, IndexAt(*c.constant(2), i)));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The gradient is the gradient's picture under the inverse transformation, as in TensorFlow.
Status TransformGradient(GradientContext& c) {
  const GraphBuilder& b = c.builder();
  const auto constant = [&](std::initializer_list<int32_t> values) {
    return c.builder().Constant(Tensor::Vector<int32_t>(values));
  };
  const Endpoint transforms = c.input(1);
  const Endpoint count = c.Op(
      "StridedSlice", {c.Op("Shape", {transforms}), constant({0}), constant({1}), constant({1})},
      {{"shrink_axis_mask", 1}});
  const Endpoint one =
      c.Op("Fill", {c.Op("Pack", {std::vector<Endpoint>{count, c.builder().Scalar<int32_t>(1)}}),
                    c.builder().Scalar<float>(1)});
  const Endpoint nine =
      c.Op("ConcatV2", {std::vector<Endpoint>{transforms, one}, c.builder().Scalar<int32_t>(1)});
  const Endpoint matrices = c.Op("Reshape", {nine, constant({-1, 3, 3})});
  const Endpoint inverse = c.Op("Reshape", {c.Op("MatrixInverse", {matrices}), constant({-1, 9})});
  const Endpoint scale = c.Op("Slice", {inverse, constant({0, 8}), constant({-1, 1})});
  const Endpoint first = c.Op("Slice", {inverse, constant({0, 0}), constant({-1, 8})});
  const Endpoint back = c.Op("RealDiv", {first, scale});
  const Endpoint shape = c.Op("Shape", {c.input(0)});
  const Endpoint size = c.Op("Slice", {shape, constant({1}), constant({2})});
  WEFT_ASSIGN_OR_RETURN(const auto interpolation, c.Attr<std::string>("interpolation"));
  WEFT_ASSIGN_OR_RETURN(const auto mode, c.Attr<std::string>("fill_mode"));
  std::vector<Argument> inputs = {c.gradient(), back, size};
  if (c.node().num_inputs() > 3) inputs.push_back(c.builder().Scalar<float>(0));
  c.set_input(0, {c.builder().AddNode(c.node().op(), inputs,
                                      {{"interpolation", interpolation}, {"fill_mode", mode}}),
                  0});
  return b.status();
}

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool has_value : {false, true}) {
    OpSpec spec(has_value ? "ImageProjectiveTransformV3" : "ImageProjectiveTransformV2");
    spec.Doc(
            "Pictures [batch, height, width, channels] whose pixel (x, y) is the one at\n"
            "((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1, from rows "
            "[a0, a1, a2, b0, b1, b2, c0, c1] of transforms.")
        .Input("images: dtype")
        .Input("transforms: float")
        .Input("output_shape: int32")
        .HostInput("output_shape");
    if (has_value) spec.Input("fill_value: float").HostInput("fill_value");
    spec.Output("transformed_images: dtype")
        .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
        .Attr("interpolation: string")
        .Attr("fill_mode: string = 'CONSTANT'")
        .Shape(TransformedShape)
        .Gradient(TransformGradient)
        .Kernel(MakeKernel<TransformKernel>());
    catalogue.Add(std::move(spec));
  }
}

}  // namespace weft::ops::image::projective_transform
