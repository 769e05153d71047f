// SPDX-License-Identifier: Apache-2.0
// Summaries of sound.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/summarize_media_kernel.h"

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
    float sample_rate = sample_rate_;
    if (c.num_inputs() > 2) {
      if (c.input(2).num_elements() != 1) {
        return InvalidArgument("sample_rate must have exactly one element, got shape ",
                               c.input(2).shape().ToString());
      }
      sample_rate = c.input(2).scalar<float>();
    }
    WEFT_ASSIGN_OR_RETURN(std::string summary, SummarizeAudio(c.input(0).scalar<std::string>(),
                                                              tensor, most_, sample_rate));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(summary);
    return absl::OkStatus();
  }

 private:
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
