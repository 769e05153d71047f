// SPDX-License-Identifier: Apache-2.0
// Summaries of pictures.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/summarize_media_kernel.h"

namespace weft::ops::io::image_summary {
namespace {

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
    WEFT_ASSIGN_OR_RETURN(std::string summary,
                          SummarizeImages(tags.scalar<std::string>(), tensor, most_, bad_color_));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<std::string>() = std::move(summary);
    return absl::OkStatus();
  }

 private:
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
