// SPDX-License-Identifier: Apache-2.0
// Summaries of sound.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/storage/summary.h"
#include "weft/storage/wav.h"

namespace weft::ops::io::audio_summary {
namespace {

class AudioKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(int64_t most, c.Attr<int64_t>("max_outputs"));
    return std::make_unique<AudioKernel>(most, c.AttrOr("sample_rate", 0.0f));
  }
  AudioKernel(int64_t most, float sample_rate) : most_(most), sample_rate_(sample_rate) {}

  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) return InvalidArgument("Tag must be a scalar");
    const Tensor& tensor = c.input(1);
    if (tensor.rank() != 2 && tensor.rank() != 3) {
      return InvalidArgument("Tensor must be 3-D or 2-D, got: ", tensor.shape().ToString());
    }
    float sample_rate = sample_rate_;
    if (c.num_inputs() > 2) {
      if (c.input(2).num_elements() != 1) {
        return InvalidArgument("sample_rate must have exactly one element, got shape ",
                               c.input(2).shape().ToString());
      }
      sample_rate = c.input(2).scalar<float>();
    }
    WEFT_ASSIGN_OR_RETURN(std::string summary,
                          Summarize(c.input(0).scalar<std::string>(), tensor, sample_rate));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(summary);
    return absl::OkStatus();
  }

 private:
  StatusOr<std::string> Summarize(const std::string& tag, const Tensor& tensor,
                                  float sample_rate) const {
    if (!(sample_rate > 0 && sample_rate < 4e9f)) {
      return InvalidArgument("sample_rate must be > 0, got ", sample_rate);
    }
    const int64_t frames = tensor.dim(1);
    const int64_t channels = tensor.rank() == 3 ? tensor.dim(2) : 1;
    std::string summary;  // messages of repeated values add up when they stand one after another
    for (int64_t i = 0; i < std::min(most_, tensor.dim(0)); ++i) {
      const auto samples = tensor.span<float>().subspan(static_cast<size_t>(i * frames * channels),
                                                        static_cast<size_t>(frames * channels));
      WEFT_ASSIGN_OR_RETURN(std::string wav, storage::EncodeWav(samples, channels,
                                                                static_cast<int64_t>(sample_rate)));
      const std::string name =
          most_ > 1 ? absl::StrCat(tag, "/audio/", i) : absl::StrCat(tag, "/audio");
      summary += storage::AudioSummary(name, sample_rate, channels, frames, wav);
    }
    return summary;
  }

  const int64_t most_;
  const float sample_rate_;  // of the older op, an attribute
};

}  // namespace

void Register(Catalogue& catalogue) {
  const char* documentation =
      "A Summary with up to max_outputs clips of sound.\ntensor: [batch, frames] or [batch, "
      "frames, "
      "channels] in [-1, 1].";
  catalogue.Add(OpSpec("AudioSummaryV2")
                    .Doc(documentation)
                    .Input("tag: string")
                    .Input("tensor: float")
                    .Input("sample_rate: float")
                    .Output("summary: string")
                    .Attr("max_outputs: int >= 1 = 3")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AudioKernel>()));
  catalogue.Add(OpSpec("AudioSummary")
                    .Doc(documentation)
                    .Input("tag: string")
                    .Input("tensor: float")
                    .Output("summary: string")
                    .Attr("sample_rate: float")
                    .Attr("max_outputs: int >= 1 = 3")
                    .Deprecated(15, "Use AudioSummaryV2.")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<AudioKernel>()));
}

}  // namespace weft::ops::io::audio_summary
