// SPDX-License-Identifier: Apache-2.0
// Sound from and to the bytes of WAV files of 16 bits.
#include "weft/storage/wav.h"

#include <limits>
#include <memory>
#include <string>

#include "weft/kernel/op_spec.h"

namespace weft::ops::audio::wav {
namespace {

class DecodeWavKernel final : public OpKernel {
 public:
  DecodeWavKernel(int64_t channels, int64_t samples) : channels_(channels), samples_(samples) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto channels = c.AttrOr<int64_t>("desired_channels", -1);
    const auto samples = c.AttrOr<int64_t>("desired_samples", -1);
    for (const int64_t wanted : {channels, samples}) {
      if (wanted == -1 || (wanted >= 0 && wanted <= std::numeric_limits<int32_t>::max())) continue;
      return InvalidArgument(
          "desired_channels and desired_samples must be -1 or not negative, got ", wanted);
    }
    return std::make_unique<DecodeWavKernel>(channels, samples);
  }

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("contents must be scalar, got shape ", c.input(0).shape().ToString());
    }
    const std::string& contents = c.input(0).scalar<std::string>();
    if (contents.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      return InvalidArgument("WAV contents are too large for int: ", contents.size());
    }
    WEFT_ASSIGN_OR_RETURN(const storage::WavSound sound, storage::DecodeWav(contents));
    const int64_t frames = sound.num_frames();
    const int64_t samples = samples_ == -1 ? frames : samples_;
    const int64_t channels = channels_ == -1 ? sound.channels : channels_;
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({samples, channels}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    float* to = out->data<float>();
    for (int64_t i = 0; i < samples; ++i) {
      for (int64_t k = 0; k < channels; ++k) {
        // The last channel stands for those that are missing, silence for missing samples.
        *to++ = i < frames ? sound.At(i, std::min(k, sound.channels - 1)) : 0.0f;
      }
    }
    c.SetOutput(1, Tensor::Scalar(static_cast<int32_t>(sound.sample_rate)));
    return absl::OkStatus();
  }

 private:
  const int64_t channels_, samples_;  // -1: as the file says
};

class EncodeWavKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &audio = c.input(0), &rate = c.input(1);
    if (audio.rank() != 2) {
      return InvalidArgument("audio must be 2-dimensional", audio.shape().ToString());
    }
    if (rate.rank() != 0) {
      return InvalidArgument("Input sample_rate should be a scalar tensor, got ",
                             rate.shape().ToString());
    }
    if (audio.num_elements() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Cannot encode audio with >= max int32 elements");
    }
    if (rate.scalar<int32_t>() <= 0) {
      return InvalidArgument("sample_rate must be in (0, 2^32), got: ", rate.scalar<int32_t>());
    }
    if (audio.dim(1) <= 0 || audio.dim(1) > std::numeric_limits<uint16_t>::max()) {
      return InvalidArgument("num_channels must be in (0, 2^16), got: ", audio.dim(1));
    }
    WEFT_ASSIGN_OR_RETURN(std::string bytes, storage::EncodeWav(audio.span<float>(), audio.dim(1),
                                                                rate.scalar<int32_t>()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    *out->data<std::string>() = std::move(bytes);
    return absl::OkStatus();
  }
};

Status DecodedShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEFT_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("desired_channels"));
  WEFT_ASSIGN_OR_RETURN(const int64_t samples, c.Attr<int64_t>("desired_samples"));
  if (channels < -1 || samples < -1) {
    return InvalidArgument("channels and samples must be non-negative, got ", channels, " and ",
                           samples);
  }
  c.set_output(0, PartialShape({samples, channels}));
  c.set_output(1, PartialShape(Shape()));
  return absl::OkStatus();
}

Status EncodedShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape(Shape()));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DecodeWav")
                    .Doc("The samples [samples, channels] of a WAV file of 16 bits, in [-1, 1], "
                         "and their rate.\nInvalidArgument for other bytes.")
                    .Input("contents: string")
                    .Output("audio: float")
                    .Output("sample_rate: int32")
                    .Attr("desired_channels: int = -1")
                    .Attr("desired_samples: int = -1")
                    .Shape(DecodedShape)
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeWavKernel>()));
  catalogue.Add(OpSpec("EncodeWav")
                    .Doc("Samples [samples, channels] in [-1, 1] as a WAV file of 16 bits.")
                    .Input("audio: float")
                    .Input("sample_rate: int32")
                    .HostInput("sample_rate")
                    .Output("contents: string")
                    .Shape(EncodedShape)
                    .NoGradient()
                    .Kernel(MakeKernel<EncodeWavKernel>()));
}

}  // namespace weft::ops::audio::wav
