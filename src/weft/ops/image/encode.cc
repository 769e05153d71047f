// SPDX-License-Identifier: Apache-2.0
// Pictures as the bytes of JPEG and PNG files.
#include <limits>
#include <memory>
#include <string>

#include "weft/kernel/op_spec.h"
#include "weft/storage/jpeg.h"
#include "weft/storage/png_codec.h"

namespace weft::ops::image::encode {
namespace {

// The size of a picture with `channels` channels, or, if that is 0, with 1 or 3.
StatusOr<storage::JpegSize> SizeOf(const Tensor& image, int64_t channels) {
  if (image.rank() != 3) {
    return InvalidArgument("image must be 3-dimensional", image.shape().ToString());
  }
  if (image.num_elements() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Cannot encode images with >= max int32 elements");
  }
  const storage::JpegSize size{image.dim(0), image.dim(1), image.dim(2)};
  if (channels == 0 ? size.channels != 1 && size.channels != 3 : size.channels != channels) {
    return InvalidArgument("image must have ", channels == 0 ? "1 or 3" : std::to_string(channels),
                           " channels, got shape ", image.shape().ToString());
  }
  return size;
}

Status Give(KernelContext& c, const Tensor& image, int64_t channels,
            const storage::JpegEncoding& encoding) {
  WEFT_ASSIGN_OR_RETURN(const storage::JpegSize size, SizeOf(image, channels));
  if (encoding.quality < 0 || encoding.quality > 100) {
    return InvalidArgument("quality must be in [0,100], got ", encoding.quality);
  }
  WEFT_ASSIGN_OR_RETURN(std::string bytes,
                        storage::EncodeJpeg(image.span<uint8_t>(), size, encoding));
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<std::string>() = std::move(bytes);
  return absl::OkStatus();
}

class EncodeJpegKernel final : public OpKernel {
 public:
  EncodeJpegKernel(int64_t channels, storage::JpegEncoding encoding)
      : channels_(channels), encoding_(std::move(encoding)) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    storage::JpegEncoding encoding;
    const auto format = c.AttrOr<std::string>("format", "");
    const auto unit = c.AttrOr<std::string>("density_unit", "in");
    encoding.quality = static_cast<int>(c.AttrOr<int64_t>("quality", 95));
    if (encoding.quality < 0 || encoding.quality > 100) {
      return InvalidArgument("quality must be in [0,100], got ", encoding.quality);
    }
    encoding.progressive = c.AttrOr<bool>("progressive", false);
    encoding.optimizes = c.AttrOr<bool>("optimize_size", false);
    encoding.chroma_downsampling = c.AttrOr<bool>("chroma_downsampling", true);
    encoding.density_in_cm = unit == "cm";
    encoding.x_density = static_cast<int>(c.AttrOr<int64_t>("x_density", 300));
    encoding.y_density = static_cast<int>(c.AttrOr<int64_t>("y_density", 300));
    encoding.xmp = c.AttrOr<std::string>("xmp_metadata", "");
    return std::make_unique<EncodeJpegKernel>(format == "grayscale" ? 1
                                              : format == "rgb"     ? 3
                                                                    : 0,
                                              std::move(encoding));
  }

  Status Compute(KernelContext& c) override { return Give(c, c.input(0), channels_, encoding_); }

 private:
  const int64_t channels_;  // 0: as the picture has
  const storage::JpegEncoding encoding_;
};

class VariableQualityKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (c.input(1).rank() != 0) {
      return InvalidArgument("quality must be scalar: ", c.input(1).shape().ToString());
    }
    return Give(c, c.input(0), 0, {.quality = c.input(1).scalar<int32_t>()});
  }
};

// One PNG for each picture of a tensor [..., height, width, channels].
class EncodePngKernel final : public OpKernel {
 public:
  explicit EncodePngKernel(int compression) : compression_(compression) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto compression = c.AttrOr<int64_t>("compression", -1);
    if (compression < -1 || compression > 9) {
      return InvalidArgument("compression should be in [-1,9], got ", compression);
    }
    return std::make_unique<EncodePngKernel>(static_cast<int>(compression));
  }

  Status Compute(KernelContext& c) override {
    const Tensor& images = c.input(0);
    const int rank = images.rank();
    if (rank < 3) {
      return InvalidArgument("images must be at least rank 3", images.shape().ToString());
    }
    if (images.num_elements() == 0) {
      return InvalidArgument("images have no pixels: ", images.shape().ToString());
    }
    const storage::PngSize size{images.dim(rank - 3), images.dim(rank - 2), images.dim(rank - 1)};
    if (size.channels < 1 || size.channels > 4) {
      return InvalidArgument("image must have 1, 2, 3, or 4 channels, got ", size.channels);
    }
    if (images.num_elements() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Cannot encode images with >= max int32 elements");
    }
    const int bits = images.dtype() == DType::kUint8 ? 8 : 16;
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(images.shape().dims().first(rank - 3)));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t bytes = size.height * size.width * size.channels * bits / 8;
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      WEFT_ASSIGN_OR_RETURN(
          out->data<std::string>()[i],
          storage::EncodePngFile(images.bytes() + i * bytes, size, bits, compression_));
    }
    return absl::OkStatus();
  }

 private:
  const int compression_;
};

Status PngShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape images, c.WithRankAtLeast(0, 3));
  if (!images.known_rank()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(
      PartialShape out,
      PartialShape::Make(images.dims().first(static_cast<size_t>(images.rank() - 3))));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status JpegShape(ShapeContext& c) {
  c.set_output(0, PartialShape(Shape()));
  return c.WithRank(0, 3).status();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("EncodeJpeg")
                    .Doc("A picture [height, width, 1 or 3] as a JPEG.")
                    .Input("image: uint8")
                    .Output("contents: string")
                    .Attr("format: {'', 'grayscale', 'rgb'} = ''")
                    .Attr("quality: int = 95")
                    .Attr("progressive: bool = false")
                    .Attr("optimize_size: bool = false")
                    .Attr("chroma_downsampling: bool = true")
                    .Attr("density_unit: {'in', 'cm'} = 'in'")
                    .Attr("x_density: int = 300")
                    .Attr("y_density: int = 300")
                    .Attr("xmp_metadata: string = ''")
                    .Shape(JpegShape)
                    .NoGradient()
                    .Kernel(MakeKernel<EncodeJpegKernel>()));
  catalogue.Add(OpSpec("EncodeJpegVariableQuality")
                    .Doc("A picture [height, width, 1 or 3] as a JPEG of a quality from 0 to 100.")
                    .Input("images: uint8")
                    .Input("quality: int32")
                    .HostInput("quality")
                    .Output("contents: string")
                    .Shape(JpegShape)
                    .NoGradient()
                    .Kernel(MakeKernel<VariableQualityKernel>()));
  catalogue.Add(OpSpec("EncodePng")
                    .Doc("Pictures [..., height, width, 1 to 4 channels] as PNGs.")
                    .Input("image: T")
                    .Output("contents: string")
                    .Attr("compression: int = -1")
                    .Attr("T: {uint8, uint16} = DT_UINT8")
                    .Shape(PngShape)
                    .NoGradient()
                    .Kernel(MakeKernel<EncodePngKernel>()));
}

}  // namespace weft::ops::image::encode
