// SPDX-License-Identifier: Apache-2.0
// What tones sound is made of: spectra of short pieces, and their mel cepstrum.
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"

namespace weft::ops::audio::spectrogram {
namespace {

using Complex = std::complex<double>;

// In place; the size is a power of two.
void Transform(std::vector<Complex>* values) {
  const size_t n = values->size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap((*values)[i], (*values)[j]);
  }
  for (size_t length = 2; length <= n; length *= 2) {
    const size_t half = length / 2;
    for (size_t k = 0; k < half; ++k) {
      const double angle = -2 * M_PI * static_cast<double>(k) / static_cast<double>(length);
      const Complex turn(std::cos(angle), std::sin(angle));
      for (size_t at = k; at < n; at += length) {
        const Complex even = (*values)[at], odd = (*values)[at + half] * turn;
        (*values)[at] = even + odd;
        (*values)[at + half] = even - odd;
      }
    }
  }
}

class SpectrogramKernel final : public OpKernel {
 public:
  SpectrogramKernel(int64_t window, int64_t stride, bool squares)
      : window_(window), stride_(stride), squares_(squares) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t window, c.Attr<int64_t>("window_size"));
    WEFT_ASSIGN_OR_RETURN(const int64_t stride, c.Attr<int64_t>("stride"));
    WEFT_ASSIGN_OR_RETURN(const bool squares, c.Attr<bool>("magnitude_squared"));
    return std::make_unique<SpectrogramKernel>(window, stride, squares);
  }

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (in.rank() != 2) {
      return InvalidArgument("input must be 2-dimensional", in.shape().ToString());
    }
    if (window_ < 2 || window_ > (int64_t{1} << 30) || stride_ < 1) {
      return InvalidArgument("Spectrogram initialization failed for window size ", window_,
                             " and stride ", stride_);
    }
    const int64_t samples = in.dim(0), channels = in.dim(1);
    const int64_t slices = samples < window_ ? 0 : (samples - window_) / stride_ + 1;
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window_)));
    const int64_t tones = 1 + size / 2;
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({channels, slices, tones}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (slices == 0) return absl::OkStatus();
    std::vector<double> hann(static_cast<size_t>(window_));
    for (int64_t i = 0; i < window_; ++i) {
      hann[static_cast<size_t>(i)] =
          0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / static_cast<double>(window_));
    }
    c.ParallelFor(channels * slices, 4, [&](int64_t begin, int64_t end) {
      std::vector<Complex> values(static_cast<size_t>(size));
      for (int64_t at = begin; at < end && !c.cancellation().IsCancelled(); ++at) {
        const float* from = in.data<float>() + at % slices * stride_ * channels + at / slices;
        std::fill(values.begin(), values.end(), Complex());
        for (int64_t i = 0; i < window_; ++i) {
          values[static_cast<size_t>(i)] =
              static_cast<double>(from[i * channels]) * hann[static_cast<size_t>(i)];
        }
        Transform(&values);
        float* to = out->data<float>() + at * tones;
        for (int64_t i = 0; i < tones; ++i) {
          const auto power = static_cast<float>(std::norm(values[static_cast<size_t>(i)]));
          to[i] = squares_ ? power : std::sqrt(power);
        }
      }
    });
    return c.cancellation().status();
  }

 private:
  const int64_t window_, stride_;
  const bool squares_;
};

double Mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

struct MelOptions {
  double lower, upper;
  int64_t bands, coefficients;
};

// Triangles over the tones of a spectrum, evenly spaced in mel: each tone counts for one band on
// the falling side and for the next one on the rising side.
struct MelBank {
  int64_t first = 0, last = -1;  // tones that count
  std::vector<int64_t> band;     // -1: before the first
  std::vector<double> weight;

  MelBank(const MelOptions& o, int64_t tones, double rate) {
    const double low = Mel(o.lower);
    const double step = (Mel(o.upper) - low) / static_cast<double>(o.bands + 1);
    std::vector<double> centers;
    for (int64_t i = 0; i <= o.bands; ++i)
      centers.push_back(low + step * static_cast<double>(i + 1));
    const double width = 0.5 * rate / static_cast<double>(tones - 1);
    const double beyond = static_cast<double>(int64_t{1} << 40);
    first = static_cast<int64_t>(std::min(1.5 + o.lower / width, beyond));
    last = static_cast<int64_t>(std::min(o.upper / width, beyond));
    int64_t channel = 0;
    for (int64_t i = 0; i < tones && last < tones; ++i) {
      const double mel = Mel(static_cast<double>(i) * width);
      band.push_back(-1);
      weight.push_back(0);
      if (i < first || i > last) continue;
      while (channel < o.bands && centers[static_cast<size_t>(channel)] < mel) ++channel;
      band.back() = channel - 1;
      const double left = channel > 0 ? centers[static_cast<size_t>(channel - 1)] : low;
      const double right = centers[static_cast<size_t>(channel)];
      weight.back() = (right - mel) / (right - left);
    }
  }

  void Sum(const float* spectrum, std::vector<double>* bands) const {
    std::fill(bands->begin(), bands->end(), 0.0);
    for (int64_t i = first; i <= last; ++i) {
      const double value = std::sqrt(static_cast<double>(spectrum[i]));
      const double part = value * weight[static_cast<size_t>(i)];
      const int64_t at = band[static_cast<size_t>(i)];
      if (at >= 0) (*bands)[static_cast<size_t>(at)] += part;
      if (at + 1 < static_cast<int64_t>(bands->size())) {
        (*bands)[static_cast<size_t>(at + 1)] += value - part;
      }
    }
  }
};

class MfccKernel final : public OpKernel {
 public:
  explicit MfccKernel(const MelOptions& options) : options_(options) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto upper = c.AttrOr<float>("upper_frequency_limit", 4000.0f);
    const auto lower = c.AttrOr<float>("lower_frequency_limit", 20.0f);
    const auto bands = c.AttrOr<int64_t>("filterbank_channel_count", 40);
    const auto coefficients = c.AttrOr<int64_t>("dct_coefficient_count", 13);
    return std::make_unique<MfccKernel>(
        MelOptions{static_cast<double>(lower), static_cast<double>(upper), bands, coefficients});
  }

  Status Compute(KernelContext& c) override {
    const Tensor &in = c.input(0), &rate = c.input(1);
    if (in.rank() != 3) {
      return InvalidArgument("spectrogram must be 3-dimensional", in.shape().ToString());
    }
    if (rate.rank() != 0) {
      return InvalidArgument("Input sample_rate should be a scalar tensor, got ",
                             rate.shape().ToString());
    }
    const int64_t tones = in.dim(2);
    const MelOptions& o = options_;
    constexpr int64_t kMost = 1 << 20;
    if (o.bands < 1 || o.bands > kMost || o.coefficients < 1 || o.coefficients > o.bands ||
        rate.scalar<int32_t>() <= 0 || tones < 2 || !(o.lower >= 0) || !(o.upper > o.lower)) {
      return InvalidArgument("MFCC initialization failed for channel count ", o.bands,
                             ", sample rate ", rate.scalar<int32_t>(), " and input length ", tones);
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({in.dim(0), in.dim(1), o.coefficients}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    const MelBank bank(o, tones, rate.scalar<int32_t>());
    if (bank.last >= tones) return absl::OkStatus();  // no tone is that high: silence
    c.ParallelFor(in.dim(0) * in.dim(1), 4, [&](int64_t begin, int64_t end) {
      std::vector<double> bands(static_cast<size_t>(o.bands));
      for (int64_t at = begin; at < end && !c.cancellation().IsCancelled(); ++at) {
        bank.Sum(in.data<float>() + at * tones, &bands);
        for (double& band : bands) band = std::log(std::max(band, 1e-12));
        WriteCosines(bands, out->data<float>() + at * o.coefficients);
      }
    });
    return c.cancellation().status();
  }

 private:
  // The discrete cosine transform of type two.
  void WriteCosines(const std::vector<double>& bands, float* to) const {
    const auto n = static_cast<double>(bands.size());
    for (int64_t i = 0; i < options_.coefficients; ++i) {
      double sum = 0;
      for (size_t k = 0; k < bands.size(); ++k) {
        sum +=
            std::cos(static_cast<double>(i) * M_PI / n * (static_cast<double>(k) + 0.5)) * bands[k];
      }
      to[i] = static_cast<float>(std::sqrt(2.0 / n) * sum);
    }
  }

  const MelOptions options_;
};

Status SpectrogramShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 2));
  c.set_output(0, PartialShape({in.dim(1), -1, -1}));
  return absl::OkStatus();
}

Status MfccShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 3));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  WEFT_ASSIGN_OR_RETURN(const int64_t coefficients, c.Attr<int64_t>("dct_coefficient_count"));
  out.SetDim(2, std::max<int64_t>(-1, coefficients));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("AudioSpectrogram")
                    .Doc("How loud each tone is in pieces of window_size samples, stride apart, of "
                         "sound [samples, channels]: [channels, pieces, tones].")
                    .Input("input: float")
                    .Output("spectrogram: float")
                    .Attr("window_size: int")
                    .Attr("stride: int")
                    .Attr("magnitude_squared: bool = false")
                    .Shape(SpectrogramShape)
                    .NoGradient()
                    .Kernel(MakeKernel<SpectrogramKernel>()));
  catalogue.Add(OpSpec("Mfcc")
                    .Doc("The mel-frequency cepstrum of squared spectra [channels, pieces, tones].")
                    .Input("spectrogram: float")
                    .Input("sample_rate: int32")
                    .HostInput("sample_rate")
                    .Output("output: float")
                    .Attr("upper_frequency_limit: float = 4000.0")
                    .Attr("lower_frequency_limit: float = 20.0")
                    .Attr("filterbank_channel_count: int = 40")
                    .Attr("dct_coefficient_count: int = 13")
                    .Shape(MfccShape)
                    .NoGradient()
                    .Kernel(MakeKernel<MfccKernel>()));
}

}  // namespace weft::ops::audio::spectrogram
