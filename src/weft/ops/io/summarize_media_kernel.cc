// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/io/summarize_media_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/storage/png.h"
#include "weft/storage/summary.h"
#include "weft/storage/wav.h"

namespace weft::ops::io {
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

// Picture `i` of the batch.
StatusOr<std::string> SummarizeImage(const std::string& name, const Tensor& tensor, int64_t i,
                                     const Tensor& bad_color) {
  const int64_t height = tensor.dim(1), width = tensor.dim(2), channels = tensor.dim(3);
  const int64_t pixels = height * width;
  std::vector<uint8_t> bytes(static_cast<size_t>(pixels * channels));
  VisitDType(tensor.dtype(), TypeList<uint8_t, float, double, Half>{}, [&]<typename T>() {
    const T* values = tensor.data<T>() + i * pixels * channels;
    if constexpr (std::is_same_v<T, uint8_t>) {
      std::copy_n(values, bytes.size(), bytes.data());
    } else {
      ToBytes(values, pixels, channels, bad_color.data<uint8_t>(), bytes.data());
    }
  });
  WEFT_ASSIGN_OR_RETURN(std::string png, storage::EncodePng(bytes, height, width, channels));
  return storage::ImageSummary(name, static_cast<int>(height), static_cast<int>(width),
                               static_cast<int>(channels), png);
}

}  // namespace

StatusOr<std::string> SummarizeImages(const std::string& tag, const Tensor& tensor, int64_t most,
                                      const Tensor& bad_color) {
  const int64_t channels = tensor.rank() == 4 ? tensor.dim(3) : 0;
  if (channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                           tensor.shape().ToString());
  }
  if (bad_color.num_elements() < channels) {
    return InvalidArgument("expected depth <= bad_color.size, got depth = ", channels,
                           ", bad_color.size = ", bad_color.num_elements());
  }
  std::string summary;  // messages of repeated values add up when they stand one after another
  for (int64_t i = 0; i < std::min(most, tensor.dim(0)); ++i) {
    const std::string name =
        most > 1 ? absl::StrCat(tag, "/image/", i) : absl::StrCat(tag, "/image");
    WEFT_ASSIGN_OR_RETURN(const std::string one, SummarizeImage(name, tensor, i, bad_color));
    summary += one;
  }
  return summary;
}

StatusOr<std::string> SummarizeAudio(const std::string& tag, const Tensor& tensor, int64_t most,
                                     float sample_rate) {
  if (tensor.rank() != 2 && tensor.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ", tensor.shape().ToString());
  }
  if (!(sample_rate > 0 && sample_rate < 4e9f)) {
    return InvalidArgument("sample_rate must be > 0, got ", sample_rate);
  }
  const int64_t frames = tensor.dim(1);
  const int64_t channels = tensor.rank() == 3 ? tensor.dim(2) : 1;
  std::string summary;  // as above
  for (int64_t i = 0; i < std::min(most, tensor.dim(0)); ++i) {
    const auto samples = tensor.span<float>().subspan(static_cast<size_t>(i * frames * channels),
                                                      static_cast<size_t>(frames * channels));
    WEFT_ASSIGN_OR_RETURN(std::string wav,
                          storage::EncodeWav(samples, channels, static_cast<int64_t>(sample_rate)));
    const std::string name =
        most > 1 ? absl::StrCat(tag, "/audio/", i) : absl::StrCat(tag, "/audio");
    summary += storage::AudioSummary(name, sample_rate, channels, frames, wav);
  }
  return summary;
}

}  // namespace weft::ops::io
