// SPDX-License-Identifier: Apache-2.0
// Pictures from the bytes of JPEG, PNG, GIF and BMP files.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/storage/gif.h"
#include "weft/storage/jpeg.h"
#include "weft/storage/png_codec.h"

namespace weft::ops::image::decode {
namespace {

enum class Format { kUnknown, kJpeg, kPng, kGif, kBmp };

Format FormatOf(absl::string_view contents) {
  if (absl::StartsWith(contents, "\xff\xd8\xff")) return Format::kJpeg;
  if (absl::StartsWith(contents, absl::string_view("\x89PNG\r\n\x1a\n", 8))) return Format::kPng;
  if (absl::StartsWith(contents, "GIF8")) return Format::kGif;
  if (absl::StartsWith(contents, "BM")) return Format::kBmp;
  return Format::kUnknown;
}

StatusOr<absl::string_view> ContentsOf(const KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument("`contents` must be scalar but got shape",
                           c.input(0).shape().ToString());
  }
  const std::string& contents = c.input(0).scalar<std::string>();
  if (contents.empty()) return InvalidArgument("Input is empty.");
  if (contents.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("Input contents are too large for int: ", contents.size());
  }
  return contents;
}

// Options of a decoding that only JPEGs have.
StatusOr<storage::JpegDecoding> JpegOptionsOf(const KernelConstruction& c) {
  storage::JpegDecoding decoding;
  const auto ratio = c.AttrOr<int64_t>("ratio", 1);
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return InvalidArgument("ratio must be 1, 2, 4, or 8, got ", ratio);
  }
  decoding.ratio = static_cast<int>(ratio);
  decoding.fancy_upscaling = c.AttrOr<bool>("fancy_upscaling", true);
  decoding.recovers_truncated = c.AttrOr<bool>("try_recover_truncated", false);
  decoding.acceptable_fraction = c.AttrOr<float>("acceptable_fraction", 1.0f);
  const auto method = c.AttrOr<std::string>("dct_method", "");
  if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
    return InvalidArgument("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  }
  decoding.accurate = method == "INTEGER_ACCURATE";
  decoding.crops = c.op() == "DecodeAndCropJpeg";
  return decoding;
}

// A little-endian number of a BMP's header.
template <typename T>
T NumberAt(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return static_cast<T>(value);
}

struct Bitmap {
  int64_t height, width, channels, stride, first;
  bool is_top_down;
};

StatusOr<Bitmap> BitmapOf(absl::string_view bytes, int64_t channels) {
  if (bytes.size() < 32) {
    return InvalidArgument(
        "Incomplete bmp content, requires at least 32 bytes to find the header size, width, "
        "height, and bpp, got ",
        bytes.size(), " bytes");
  }
  const int64_t header = NumberAt<int32_t>(bytes, 10), width = NumberAt<int32_t>(bytes, 18),
                height = NumberAt<int32_t>(bytes, 22);
  const int64_t bytes_per_pixel = NumberAt<int16_t>(bytes, 28) / 8;
  if (bytes_per_pixel != 1 && bytes_per_pixel != 3 && bytes_per_pixel != 4) {
    return InvalidArgument("Number of channels inherent in the image must be 1, 3 or 4, was ",
                           bytes_per_pixel);
  }
  if (channels != 0 && channels != bytes_per_pixel) {
    return InvalidArgument("channels attribute ", channels,
                           " does not match bits per pixel from file ", bytes_per_pixel);
  }
  if (header < 0 || width <= 0 || height == 0) {
    return InvalidArgument("A BMP of ", width, " x ", height, " pixels, whose data begin at byte ",
                           header, ", is not one");
  }
  Bitmap bitmap{height < 0 ? -height : height, width, bytes_per_pixel, 0, header, height < 0};
  bitmap.stride = (bytes_per_pixel * width + 3) / 4 * 4;
  const int64_t needed = (bitmap.height - 1) * bitmap.stride + bytes_per_pixel * width;
  if (needed > static_cast<int64_t>(bytes.size()) - header) {
    return InvalidArgument("Incomplete bmp content, requires at least ", needed + header,
                           " bytes, got ", bytes.size(), " bytes");
  }
  return bitmap;
}

void ReadBitmap(absl::string_view bytes, const Bitmap& b, uint8_t* to) {
  for (int64_t y = 0; y < b.height; ++y) {
    const int64_t line = b.is_top_down ? y : b.height - 1 - y;
    const char* from = bytes.data() + b.first + line * b.stride;
    for (int64_t x = 0; x < b.width; ++x, from += b.channels, to += b.channels) {
      for (int64_t k = 0; k < b.channels; ++k) {
        const int64_t source = b.channels > 1 && k < 3 ? 2 - k : k;  // blue comes first
        to[k] = static_cast<uint8_t>(from[source]);
      }
    }
  }
}

// One of the ops Decode...: each takes all formats that give what it promises.
class DecodeKernel final : public OpKernel {
 public:
  DecodeKernel(std::string op, int64_t channels, bool expands, storage::JpegDecoding jpeg)
      : op_(std::move(op)), channels_(channels), expands_(expands), jpeg_(jpeg) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const auto channels = c.AttrOr<int64_t>("channels", c.op() == "DecodeGif" ? 3 : 0);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
      return InvalidArgument("`channels` must be 0, 1, 3 or 4 but got ", channels);
    }
    WEFT_ASSIGN_OR_RETURN(const auto jpeg, JpegOptionsOf(c));
    return std::make_unique<DecodeKernel>(c.op(), channels,
                                          c.AttrOr<bool>("expand_animations", true), jpeg);
  }

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view contents, ContentsOf(c));
    const Format format = FormatOf(contents);
    if ((op_ == "DecodeBmp" && format != Format::kBmp) ||
        (op_ == "DecodeAndCropJpeg" && format != Format::kJpeg) ||
        (format == Format::kBmp && op_ != "DecodeBmp" && op_ != "DecodeImage")) {
      if (format != Format::kUnknown) {
        return InvalidArgument(
            "Trying to decode a picture of another format using a wrong op. Use "
            "`decode_image` or the format's own op instead. Op used: ",
            op_);
      }
    }
    switch (format) {
      case Format::kJpeg:
        return FromJpeg(c, contents);
      case Format::kPng:
        return FromPng(c, contents);
      case Format::kGif:
        return FromGif(c, contents);
      case Format::kBmp:
        return FromBitmap(c, contents);
      default:
        return InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    }
  }

 private:
  // Where a decoder writes: the output itself, or bytes that become numbers of another type.
  class Sink {
   public:
    Sink(KernelContext& c, DType stored) : c_(c), stored_(stored) {}
    void* Allocate(const Shape& shape) {
      auto out = c_.AllocateOutput(0, shape);
      status_ = out.status();
      if (!out.ok()) return nullptr;
      out_ = *out;
      if (out_->dtype() == stored_) return out_->bytes();
      auto bytes = c_.AllocateTemporary(stored_, shape);
      status_ = bytes.status();
      if (!bytes.ok()) return nullptr;
      bytes_ = *std::move(bytes);
      return bytes_.bytes();
    }
    Status Finish(const Status& decoded) {
      WEFT_RETURN_IF_ERROR(status_);
      WEFT_RETURN_IF_ERROR(decoded);
      if (!bytes_.IsInitialized()) return decoded;
      const int64_t n = out_->num_elements();
      if (out_->dtype() == DType::kUint16) {
        const auto* from = bytes_.data<uint8_t>();
        for (int64_t i = 0; i < n; ++i)
          out_->data<uint16_t>()[i] = static_cast<uint16_t>(from[i] * 256);
      } else if (stored_ == DType::kUint16) {
        const auto* from = bytes_.data<uint16_t>();
        for (int64_t i = 0; i < n; ++i)
          out_->data<float>()[i] = static_cast<float>(from[i]) * (1.0f / 65535);
      } else {
        const auto* from = bytes_.data<uint8_t>();
        for (int64_t i = 0; i < n; ++i)
          out_->data<float>()[i] = static_cast<float>(from[i]) * (1.0f / 255);
      }
      return absl::OkStatus();
    }

   private:
    KernelContext& c_;
    const DType stored_;
    Status status_;
    Tensor* out_ = nullptr;
    Tensor bytes_;
  };

  // [height, width, channels], behind a dimension of frames where the op promises one.
  Shape ShapeOf(int64_t height, int64_t width, int64_t channels) const {
    if (op_ == "DecodeGif") return Shape{1, height, width, channels};
    return Shape{height, width, channels};
  }

  Status FromJpeg(KernelContext& c, absl::string_view contents) const {
    if (channels_ == 4) {
      return InvalidArgument("channels must be 0, 1, or 3 for JPEG, got ", channels_);
    }
    storage::JpegDecoding decoding = jpeg_;
    decoding.channels = static_cast<int>(channels_);
    if (decoding.crops) {
      const Tensor& window = c.input(1);
      if (window.rank() != 1 || window.dim(0) != 4) {
        return InvalidArgument("crop_window must be 1-D with four elements, got shape ",
                               window.shape().ToString());
      }
      decoding.crop_y = IndexAt(window, 0);
      decoding.crop_x = IndexAt(window, 1);
      decoding.crop_height = IndexAt(window, 2);
      decoding.crop_width = IndexAt(window, 3);
    }
    Sink sink(c, DType::kUint8);
    return sink.Finish(storage::DecodeJpeg(contents, decoding, [&](const storage::JpegSize& size) {
      return static_cast<uint8_t*>(sink.Allocate(ShapeOf(size.height, size.width, size.channels)));
    }));
  }

  Status FromPng(KernelContext& c, absl::string_view contents) const {
    const bool is_narrow = c.output_dtype(0) == DType::kUint8;
    Sink sink(c, is_narrow ? DType::kUint8 : DType::kUint16);
    return sink.Finish(storage::DecodePng(contents, static_cast<int>(channels_), is_narrow ? 8 : 16,
                                          [&](const storage::PngSize& size) {
                                            return sink.Allocate(
                                                ShapeOf(size.height, size.width, size.channels));
                                          }));
  }

  Status FromGif(KernelContext& c, absl::string_view contents) const {
    if (channels_ != 0 && channels_ != 3) {
      return InvalidArgument("channels must be 0 or 3 for GIF, got ", channels_);
    }
    const bool is_image = op_ == "DecodeImage";
    const bool has_frames = op_ == "DecodeGif" || (is_image && expands_);
    Sink sink(c, DType::kUint8);
    Status refused;
    const Status decoded = storage::DecodeGif(
        contents, is_image && !expands_, [&](const storage::GifSize& size) -> uint8_t* {
          if (!has_frames && size.frames > 1) {
            refused = InvalidArgument("Got ", size.frames,
                                      " frames, but animated gifs can only be decoded by "
                                      "tf.io.decode_gif or tf.io.decode_image");
            return nullptr;
          }
          const Shape shape = has_frames ? Shape{size.frames, size.height, size.width, 3}
                                         : Shape{size.height, size.width, 3};
          return static_cast<uint8_t*>(sink.Allocate(shape));
        });
    WEFT_RETURN_IF_ERROR(refused);
    return sink.Finish(decoded);
  }

  Status FromBitmap(KernelContext& c, absl::string_view contents) const {
    if (channels_ == 1) {
      return InvalidArgument("`channels` must be 0, 3 or 4 for BMP, but got ", channels_);
    }
    WEFT_ASSIGN_OR_RETURN(const Bitmap bitmap, BitmapOf(contents, channels_));
    Sink sink(c, DType::kUint8);
    void* pixels = sink.Allocate(Shape{bitmap.height, bitmap.width, bitmap.channels});
    if (pixels != nullptr) ReadBitmap(contents, bitmap, static_cast<uint8_t*>(pixels));
    return sink.Finish(absl::OkStatus());
  }

  const std::string op_;
  const int64_t channels_;
  const bool expands_;  // all frames of an animation, not the first alone
  const storage::JpegDecoding jpeg_;
};

class ShapeOfJpegKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("contents must be scalar, got shape ", c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const storage::JpegSize size,
                          storage::JpegSizeOf(c.input(0).scalar<std::string>()));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{3}));
    return StoreIndices({size.height, size.width, size.channels}, out);
  }
};

Status PictureShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  const auto channels = FindAttrOr<int64_t>(c.attrs(), "channels", 0);
  if (channels < 0) return InvalidArgument("channels must be non-negative, got ", channels);
  c.set_output(0, PartialShape({-1, -1, channels == 0 ? -1 : channels}));
  return absl::OkStatus();
}

Status CroppedShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(PictureShape(c));
  if (c.constant(1) == nullptr || c.constant(1)->num_elements() != 4) return absl::OkStatus();
  PartialShape shape = c.output(0);
  shape.SetDim(0, IndexAt(*c.constant(1), 2));
  shape.SetDim(1, IndexAt(*c.constant(1), 3));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

void RegisterJpeg(Catalogue& catalogue, bool crops) {
  OpSpec spec(crops ? "DecodeAndCropJpeg" : "DecodeJpeg");
  spec.Doc(absl::StrCat(
      "The pixels [height, width, channels] of a JPEG", crops ? ", or of a window of it" : "",
      ".\nInvalidArgument for what cannot be decoded. A file that is cut off may be accepted from "
      "acceptable_fraction of its lines on."));
  spec.Input("contents: string");
  if (crops) spec.Input("crop_window: int32").HostInput("crop_window");
  spec.Output("image: uint8")
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''")
      .Shape(crops ? CroppedShape : PictureShape)
      .NoGradient()
      .Kernel(MakeKernel<DecodeKernel>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterJpeg(catalogue, false);
  RegisterJpeg(catalogue, true);
  catalogue.Add(OpSpec("DecodePng")
                    .Doc("The pixels [height, width, channels] of a PNG.\nInvalidArgument for what "
                         "cannot be decoded.")
                    .Input("contents: string")
                    .Output("image: dtype")
                    .Attr("channels: int = 0")
                    .Attr("dtype: {uint8, uint16} = DT_UINT8")
                    .Shape(PictureShape)
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeKernel>()));
  catalogue.Add(OpSpec("DecodeBmp")
                    .Doc("The pixels [height, width, channels] of a BMP.")
                    .Input("contents: string")
                    .Output("image: uint8")
                    .Attr("channels: int = 0")
                    .Shape(PictureShape)
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeKernel>()));
  catalogue.Add(OpSpec("DecodeGif")
                    .Doc("The frames [frames, height, width, 3] of a GIF.")
                    .Input("contents: string")
                    .Output("image: uint8")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({-1, -1, -1, 3}));
                      return c.WithRank(0, 0).status();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeKernel>()));
  catalogue.Add(OpSpec("DecodeImage")
                    .Doc("The pixels of a JPEG, PNG, GIF or BMP; with expand_animations all frames "
                         "of a GIF.\nFloats lie between 0 and 1.")
                    .Input("contents: string")
                    .Output("image: dtype")
                    .Attr("channels: int = 0")
                    .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
                    .Attr("expand_animations: bool = true")
                    .Shape([](ShapeContext& c) { return c.WithRank(0, 0).status(); })
                    .NoGradient()
                    .Kernel(MakeKernel<DecodeKernel>()));
  catalogue.Add(OpSpec("ExtractJpegShape")
                    .Doc("Height, width and channels of a JPEG, from its header alone.")
                    .Input("contents: string")
                    .Output("image_shape: output_type")
                    .Attr("output_type: {int32, int64} = DT_INT32")
                    .Shape([](ShapeContext& c) {
                      c.set_output(0, PartialShape({3}));
                      return c.WithRank(0, 0).status();
                    })
                    .NoGradient()
                    .Kernel(MakeKernel<ShapeOfJpegKernel>()));
}

}  // namespace weft::ops::image::decode
