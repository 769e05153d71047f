// SPDX-License-Identifier: Apache-2.0
// Summaries of pictures.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/storage/png.h"
#include "weft/storage/summary.h"

namespace weft::ops::io::image_summary {
namespace {

// What maps the values of one picture to bytes: value * scale + offset. Positive values fill 0 to
// 255; where some are negative, 0 becomes 128.
template <typename T>
struct Tone {
  T scale;
  T offset;
};

template <typename T>
Tone<T> ToneOf(float least, float most) {
  constexpr float kNothing = 1e-6f;
  if (least < 0) {
    const float size = std::max(std::abs(least), std::abs(most));
    return {static_cast<T>(size < kNothing ? 0.0f : 127.0f / size), static_cast<T>(128.0f)};
  }
  return {static_cast<T>(most < kNothing ? 0.0f : 255.0f / most), static_cast<T>(0.0f)};
}

template <typename T>
void ToBytes(const T* values, int64_t pixels, int64_t channels, const uint8_t* bad_color,
             uint8_t* out) {
  const auto is_good = [&](int64_t i) {
    return std::all_of(values + i * channels, values + (i + 1) * channels,
                       [](T value) { return std::isfinite(static_cast<double>(value)); });
  };
  float least = std::numeric_limits<float>::infinity();
  float most = -least;
  for (int64_t i = 0; i < pixels; ++i) {
    if (!is_good(i)) continue;
    for (int64_t k = i * channels; k < (i + 1) * channels; ++k) {
      least = std::min(least, static_cast<float>(values[k]));
      most = std::max(most, static_cast<float>(values[k]));
    }
  }
  const Tone<T> tone = ToneOf<T>(least, most);
  for (int64_t i = 0; i < pixels; ++i) {
    if (!is_good(i)) {
      std::copy_n(bad_color, channels, out + i * channels);
      continue;
    }
    for (int64_t k = i * channels; k < (i + 1) * channels; ++k) {
      const T scaled = static_cast<T>(values[k] * tone.scale);
      const double value = static_cast<double>(static_cast<T>(scaled + tone.offset));
      out[k] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
}

class ImageKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(int64_t most, c.Attr<int64_t>("max_images"));
    WEFT_ASSIGN_OR_RETURN(Tensor color, c.Attr<Tensor>("bad_color"));
    if (color.dtype() != DType::kUint8) {
      return InvalidArgument("bad_color must be uint8, got ", DTypeName(color.dtype()));
    }
    if (!color.shape().IsVector()) {
      return InvalidArgument("bad_color must be a vector, got shape ", color.shape().ToString());
    }
    return std::make_unique<ImageKernel>(most, std::move(color));
  }
  ImageKernel(int64_t most, Tensor bad_color) : most_(most), bad_color_(std::move(bad_color)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& tags = c.input(0);
    const Tensor& tensor = c.input(1);
    if (tags.num_elements() != 1) {
      return InvalidArgument("Tags must be a scalar, got shape ", tags.shape().ToString());
    }
    const int64_t channels = tensor.rank() == 4 ? tensor.dim(3) : 0;
    if (channels != 1 && channels != 3 && channels != 4) {
      return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                             tensor.shape().ToString());
    }
    if (bad_color_.num_elements() < channels) {
      return InvalidArgument("expected depth <= bad_color.size, got depth = ", channels,
                             ", bad_color.size = ", bad_color_.num_elements());
    }
    const int64_t count = std::min(most_, tensor.dim(0));
    std::string summary;  // messages of repeated values add up when they stand one after another
    for (int64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(std::string one, Summarize(tags.scalar<std::string>(), tensor, i));
      summary += one;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(summary);
    return absl::OkStatus();
  }

 private:
  StatusOr<std::string> Summarize(const std::string& tag, const Tensor& tensor, int64_t i) const {
    const int64_t height = tensor.dim(1), width = tensor.dim(2), channels = tensor.dim(3);
    const int64_t pixels = height * width;
    std::vector<uint8_t> bytes(static_cast<size_t>(pixels * channels));
    VisitDType(tensor.dtype(), TypeList<uint8_t, float, double, Half>{}, [&]<typename T>() {
      const T* values = tensor.data<T>() + i * pixels * channels;
      if constexpr (std::is_same_v<T, uint8_t>) {
        std::copy_n(values, bytes.size(), bytes.data());
      } else {
        ToBytes(values, pixels, channels, bad_color_.data<uint8_t>(), bytes.data());
      }
    });
    WEFT_ASSIGN_OR_RETURN(std::string png, storage::EncodePng(bytes, height, width, channels));
    const std::string name =
        most_ > 1 ? absl::StrCat(tag, "/image/", i) : absl::StrCat(tag, "/image");
    return storage::ImageSummary(name, static_cast<int>(height), static_cast<int>(width),
                                 static_cast<int>(channels), png);
  }

  const int64_t most_;
  const Tensor bad_color_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("ImageSummary")
          .Doc("A Summary with up to max_images pictures.\ntensor: [batch, height, width, "
               "channels] with 1, 3 or 4 channels. Values other than uint8 are scaled to 0..255 "
               "for each picture; pixels that are not finite get bad_color.")
          .Input("tag: string")
          .Input("tensor: T")
          .Output("summary: string")
          .Attr("max_images: int >= 1 = 3")
          .Attr("T: {uint8, float, half, double} = DT_FLOAT")
          .Attr("bad_color: tensor = uint8 [255, 0, 0, 255]")
          .Shape(shapes::Scalar)
          .NoGradient()
          .Kernel(MakeKernel<ImageKernel>()));
}

}  // namespace weft::ops::io::image_summary
