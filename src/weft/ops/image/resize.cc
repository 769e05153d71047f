// SPDX-License-Identifier: Apache-2.0
// Pictures in another size: bilinear, bicubic, by areas and by the nearest pixel.
#include <memory>
#include <string>
#include <utility>

#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/image/sampling_kernel.h"

namespace weft::ops::image::resize {
namespace {

using MakeMixes = std::vector<Mix> (*)(const Sampling&, int64_t in, int64_t out);

class ResizeKernel : public OpKernel {
 public:
  explicit ResizeKernel(const Sampling& sampling) : sampling_(sampling) {}

 protected:
  // The output for pictures of input 0 in the size that input 1 says.
  StatusOr<Tensor*> Allocate(KernelContext& c, PictureSizes* from) const {
    WEFT_ASSIGN_OR_RETURN(*from, PictureSizes::Of(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const auto size, SizeOf(c.input(1)));
    return c.AllocateOutput(0, Shape{from->batch, size.first, size.second, from->channels});
  }
  // The same for the gradient, in the shape of the original picture (input 1).
  StatusOr<Tensor*> AllocateGradient(KernelContext& c) const {
    if (c.input(0).rank() != 4 || c.input(1).rank() != 4) {
      return InvalidArgument("Gradients and original image must be 4-dimensional, got ",
                             c.input(0).shape().ToString(), " and ", c.input(1).shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(PictureSizes::Of(c.input(1)).status());
    if (c.input(0).dim(0) != c.input(1).dim(0) || c.input(0).dim(3) != c.input(1).dim(3)) {
      return InvalidArgument("Gradients and original image must have the same batch and channels: ",
                             c.input(0).shape().ToString(), " and ", c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(1).shape()));
    ClearElements(out, 0, out->num_elements());
    return out;
  }

  const Sampling sampling_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> CreateSampled(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const Sampling sampling, Sampling::Of(c));
  return std::make_unique<K>(sampling);
}

// Each pixel is a mix of mixes: of a few lines, each of a few columns. A line of the original is
// mixed once for all lines that it is part of, one after another.
template <MakeMixes mixes>
class MixKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;
  Status Compute(KernelContext& c) override {
    PictureSizes from;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, Allocate(c, &from));
    const Tensor images = c.input(0);
    const int64_t height = out->dim(1), width = out->dim(2);
    const std::vector<Mix> lines = mixes(sampling_, from.height, height);
    const std::vector<Mix> columns = mixes(sampling_, from.width, width);
    VisitDType(images.dtype(), PixelTypes(), [&]<typename T>() {
      c.ParallelFor(from.batch * height, std::max<int64_t>(1, 4096 / (width * from.channels)),
                    [&](int64_t begin, int64_t end) {
                      MixedLines<T> mixed(from.channels, columns);
                      for (int64_t i = begin; i < end; ++i) {
                        const T* picture = images.data<T>() +
                                           i / height * from.height * from.width * from.channels;
                        WriteLine(picture, from, lines[i % height], &mixed,
                                  out->data<float>() + i * width * from.channels);
                      }
                    });
    });
    return absl::OkStatus();
  }

 private:
  // Lines of the original whose columns are mixed: the last few that were asked for.
  template <typename T>
  class MixedLines {
   public:
    MixedLines(int64_t channels, const std::vector<Mix>& columns)
        : channels_(channels), columns_(columns) {
      for (Line& line : lines_) line.values.resize(columns.size() * static_cast<size_t>(channels));
    }
    int64_t size() const { return static_cast<int64_t>(lines_[0].values.size()); }
    // Valid until kLines others were asked for.
    const float* Of(const T* line) {
      Line* oldest = &lines_[0];
      for (Line& known : lines_) {
        if (known.of == line) {
          known.asked = ++asked_;
          return known.values.data();
        }
        if (known.asked < oldest->asked) oldest = &known;
      }
      oldest->of = line;
      oldest->asked = ++asked_;
      switch (channels_) {
        case 1:
          MixColumns<1>(line, oldest->values.data());
          break;
        case 3:
          MixColumns<3>(line, oldest->values.data());
          break;
        default:
          MixColumns<0>(line, oldest->values.data());
      }
      return oldest->values.data();
    }

   private:
    static constexpr size_t kLines = 4;  // what a pixel is mixed from, at most
    struct Line {
      const T* of = nullptr;
      int64_t asked = 0;  // when
      std::vector<float> values;
    };

    // For as many channels, or for any number of them.
    template <int64_t kChannels>
    void MixColumns(const T* line, float* to) const {
      const int64_t channels = kChannels > 0 ? kChannels : channels_;
      for (const Mix& column : columns_) {
        if (column.count == 2) {
          const T* const left = line + column.at[0] * channels;
          const T* const right = line + column.at[1] * channels;
          for (int64_t k = 0; k < channels; ++k) {
            *to++ = AsFloat(left[k]) * column.weight[0] + AsFloat(right[k]) * column.weight[1];
          }
          continue;
        }
        for (int64_t k = 0; k < channels; ++k) {
          float sum = 0;
          for (int x = 0; x < column.count; ++x) {
            sum += AsFloat(line[column.at[x] * channels + k]) * column.weight[x];
          }
          *to++ = sum;
        }
      }
    }

    const int64_t channels_;
    const std::vector<Mix>& columns_;
    Line lines_[kLines];
    int64_t asked_ = 0;
  };

  template <typename T>
  static void WriteLine(const T* picture, const PictureSizes& from, const Mix& line,
                        MixedLines<T>* mixed, float* out) {
    const float* rows[4];
    for (int y = 0; y < line.count; ++y) {
      rows[y] = mixed->Of(picture + line.at[y] * from.width * from.channels);
    }
    const int64_t size = mixed->size();
    if (line.count == 2) {
      for (int64_t i = 0; i < size; ++i) {
        out[i] = rows[0][i] * line.weight[0] + rows[1][i] * line.weight[1];
      }
      return;
    }
    for (int64_t i = 0; i < size; ++i) {
      float sum = 0;
      for (int y = 0; y < line.count; ++y) sum += rows[y][i] * line.weight[y];
      out[i] = sum;
    }
  }
};

// Adds each gradient to the pixels that its pixel was mixed from.
template <MakeMixes mixes>
class MixGradKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, AllocateGradient(c));
    const Tensor gradients = c.input(0);
    const int64_t height = gradients.dim(1), width = gradients.dim(2);
    const std::vector<Mix> lines = mixes(sampling_, out->dim(1), height);
    const std::vector<Mix> columns = mixes(sampling_, out->dim(2), width);
    VisitDType(out->dtype(), RealFloats(), [&]<typename T>() {
      c.ParallelFor(out->dim(0), 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          AddPicture<T>(gradients, b, lines, columns, out);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void AddPicture(const Tensor& gradients, int64_t b, const std::vector<Mix>& lines,
                         const std::vector<Mix>& columns, Tensor* out) {
    const int64_t width = out->dim(2), channels = out->dim(3);
    T* picture = out->data<T>() + b * out->dim(1) * width * channels;
    const float* from = gradients.data<float>() +
                        b * static_cast<int64_t>(lines.size() * columns.size()) * channels;
    for (const Mix& line : lines) {
      for (const Mix& column : columns) {
        for (int64_t k = 0; k < channels; ++k, ++from) {
          for (int y = 0; y < line.count; ++y) {
            for (int x = 0; x < column.count; ++x) {
              T& to = picture[(line.at[y] * width + column.at[x]) * channels + k];
              const float part = *from * line.weight[y] * column.weight[x];
              to = static_cast<T>(static_cast<Sum<T>>(to) + static_cast<Sum<T>>(part));
            }
          }
        }
      }
    }
  }
  template <typename T>
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
};

class NearestKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;
  Status Compute(KernelContext& c) override {
    PictureSizes from;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, Allocate(c, &from));
    const Tensor images = c.input(0);
    const int64_t height = out->dim(1), width = out->dim(2);
    const float y_scale = sampling_.Scale(from.height, height);
    const float x_scale = sampling_.Scale(from.width, width);
    for (int64_t i = 0; i < from.batch * height; ++i) {
      const int64_t y = sampling_.Nearest(i % height, y_scale, from.height);
      for (int64_t column = 0; column < width; ++column) {
        const int64_t x = sampling_.Nearest(column, x_scale, from.width);
        CopyElements(images, ((i / height * from.height + y) * from.width + x) * from.channels,
                     from.channels, out, (i * width + column) * from.channels);
      }
    }
    return absl::OkStatus();
  }
};

class NearestGradKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;
  Status Compute(KernelContext& c) override {
    PictureSizes from;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, Allocate(c, &from));
    ClearElements(out, 0, out->num_elements());
    const Tensor gradients = c.input(0);
    const int64_t height = out->dim(1), width = out->dim(2);
    const float y_scale = sampling_.Scale(height, from.height);
    const float x_scale = sampling_.Scale(width, from.width);
    VisitDType(out->dtype(), PixelTypes(), [&]<typename T>() {
      const T* gradient = gradients.data<T>();
      for (int64_t i = 0; i < from.batch * from.height; ++i) {
        const int64_t y = sampling_.Nearest(i % from.height, y_scale, height);
        for (int64_t column = 0; column < from.width; ++column) {
          const int64_t x = sampling_.Nearest(column, x_scale, width);
          T* to = out->data<T>() + ((i / from.height * height + y) * width + x) * from.channels;
          for (int64_t k = 0; k < from.channels; ++k) to[k] = static_cast<T>(to[k] + *gradient++);
        }
      }
    });
    return absl::OkStatus();
  }
};

// Each pixel is the mean of the area that it covers.
class AreaKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;
  Status Compute(KernelContext& c) override {
    PictureSizes from;
    WEFT_ASSIGN_OR_RETURN(Tensor * out, Allocate(c, &from));
    const Tensor images = c.input(0);
    const std::vector<Part> lines = Parts(from.height, out->dim(1));
    const std::vector<Part> columns = Parts(from.width, out->dim(2));
    VisitDType(images.dtype(), PixelTypes(), [&]<typename T>() {
      float* to = out->data<float>();
      for (int64_t b = 0; b < from.batch; ++b) {
        const T* picture = images.data<T>() + b * from.height * from.width * from.channels;
        for (const Part& line : lines) {
          for (const Part& column : columns) {
            for (int64_t k = 0; k < from.channels; ++k) {
              *to++ = Mean(picture + k, from, line, column);
            }
          }
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // What one pixel covers of a side: pixels from `first` on, each with what counts of it.
  struct Part {
    int64_t first = 0;
    std::vector<float> weights;
    float scale = 1;
  };

  std::vector<Part> Parts(int64_t in, int64_t out) const {
    const float scale = sampling_.Scale(in, out);
    // A side of one pixel whose corners are those of a longer one.
    if (scale == 0) return std::vector<Part>(static_cast<size_t>(out), Part{.weights = {1.0f}});
    std::vector<Part> parts;
    for (int64_t x = 0; x < out; ++x) {
      const float begin = static_cast<float>(x) * scale, end = static_cast<float>(x + 1) * scale;
      Part part{.first = static_cast<int64_t>(std::floor(begin)), .scale = scale};
      for (int64_t at = part.first; at < static_cast<int64_t>(std::ceil(end)); ++at) {
        const auto left = static_cast<float>(at), right = static_cast<float>(at + 1);
        part.weights.push_back(left < begin  ? (right > end ? scale : right - begin)
                               : right > end ? end - left
                                             : 1.0f);
      }
      parts.push_back(std::move(part));
    }
    return parts;
  }

  template <typename T>
  static float Mean(const T* picture, const PictureSizes& from, const Part& line,
                    const Part& column) {
    float sum = 0;
    for (size_t y = 0; y < line.weights.size(); ++y) {
      const int64_t row = std::clamp<int64_t>(line.first + y, 0, from.height - 1);
      float of_line = 0;
      for (size_t x = 0; x < column.weights.size(); ++x) {
        const int64_t at = std::clamp<int64_t>(column.first + x, 0, from.width - 1);
        of_line += AsFloat(picture[(row * from.width + at) * from.channels]) * column.weights[x];
      }
      sum += of_line * line.weights[y];
    }
    return sum / (line.scale * column.scale);
  }
};

// The op of the gradient takes the original picture, or its height and width.
Status Gradient(GradientContext& c, const char* op) {
  WEFT_ASSIGN_OR_RETURN(const bool corners, c.Attr<bool>("align_corners"));
  WEFT_ASSIGN_OR_RETURN(const bool centers, c.Attr<bool>("half_pixel_centers"));
  Endpoint original = c.input(0);
  if (!IsFloating(TypeOf(original))) return absl::OkStatus();
  if (c.node().op() == "ResizeNearestNeighbor") {
    GraphBuilder& b = c.builder();
    original = c.Op("Slice", {c.Op("Shape", {original}), b.Constant(Tensor::Vector<int32_t>({1})),
                              b.Constant(Tensor::Vector<int32_t>({2}))});
  }
  Node* node = c.builder().AddNode(op, {c.gradient(), original},
                                   {{"align_corners", corners}, {"half_pixel_centers", centers}});
  if (node == nullptr) return c.builder().status();
  c.set_input(0, {node, 0});
  return absl::OkStatus();
}

Status LikeSecond(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

OpSpec& AddSampling(OpSpec& spec) {
  return spec.Attr("align_corners: bool = false").Attr("half_pixel_centers: bool = false");
}

constexpr char kPixels[] =
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";

OpSpec Resize(const char* name, const char* how, const char* output) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat("The pictures in height size[0] and width size[1], ", how,
                        "\nPictures are [batch, height, width, channels]. align_corners maps "
                        "corners to corners, half_pixel_centers takes a pixel for its middle."))
      .Input("images: T")
      .Input("size: int32")
      .HostInput("size")
      .Output(output)
      .Shape(ResizedShape);
  return spec;
}

OpSpec GradientOp(const char* name) {
  OpSpec spec(name);
  spec.Doc("The gradient of the original image, from that of the resized one.")
      .Input("grads: float")
      .Input("original_image: T")
      .Output("output: T")
      .Shape(LikeSecond);
  return spec;
}

void RegisterMixes(Catalogue& catalogue) {
  OpSpec bilinear = Resize("ResizeBilinear", "mixed of the four pixels around each place.",
                           "resized_images: float");
  bilinear.Attr(
      "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, "
      "bfloat16}");
  AddSampling(bilinear)
      .Gradient([](GradientContext& c) { return Gradient(c, "ResizeBilinearGrad"); })
      .Kernel({.factory = CreateSampled<MixKernel<LinearMixes>>});
  catalogue.Add(std::move(bilinear));
  OpSpec bicubic = Resize("ResizeBicubic", "mixed of the sixteen pixels around each place.",
                          "resized_images: float");
  AddSampling(bicubic.Attr(kPixels))
      .Gradient([](GradientContext& c) { return Gradient(c, "ResizeBicubicGrad"); })
      .Kernel({.factory = CreateSampled<MixKernel<CubicMixes>>});
  catalogue.Add(std::move(bicubic));
  OpSpec linear_grad = GradientOp("ResizeBilinearGrad"),
         cubic_grad = GradientOp("ResizeBicubicGrad");
  AddSampling(linear_grad.Attr("T: {float, bfloat16, half, double}"))
      .NoGradient()
      .Kernel({.factory = CreateSampled<MixGradKernel<LinearMixes>>});
  AddSampling(cubic_grad.Attr("T: {float, double}"))
      .NoGradient()
      .Kernel({.factory = CreateSampled<MixGradKernel<CubicMixes>>});
  catalogue.Add(std::move(linear_grad));
  catalogue.Add(std::move(cubic_grad));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterMixes(catalogue);
  OpSpec nearest = Resize("ResizeNearestNeighbor", "each pixel the nearest of the original.",
                          "resized_images: T");
  AddSampling(nearest.Attr(kPixels))
      .Gradient([](GradientContext& c) { return Gradient(c, "ResizeNearestNeighborGrad"); })
      .Kernel({.factory = CreateSampled<NearestKernel>});
  catalogue.Add(std::move(nearest));
  OpSpec nearest_grad("ResizeNearestNeighborGrad");
  nearest_grad
      .Doc(
          "The gradient of images of height size[0] and width size[1], from that of the "
          "resized ones.")
      .Input("grads: T")
      .Input("size: int32")
      .HostInput("size")
      .Output("output: T")
      .Attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
      .Shape(ResizedShape)
      .NoGradient();
  AddSampling(nearest_grad).Kernel({.factory = CreateSampled<NearestGradKernel>});
  catalogue.Add(std::move(nearest_grad));
  OpSpec area =
      Resize("ResizeArea", "each pixel the mean of what it covers.", "resized_images: float");
  area.Attr(kPixels)
      .Attr("align_corners: bool = false")
      .NoGradient()
      .Kernel({.factory = CreateSampled<AreaKernel>});
  catalogue.Add(std::move(area));
}

}  // namespace weft::ops::image::resize
