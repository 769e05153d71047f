// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/png_codec.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

namespace weft::storage {
namespace {

constexpr int64_t kMostPngPixels = int64_t{1} << 29;
constexpr int64_t kMostPngSide = int64_t{1} << 27;

// The library leaves by longjmp: the functions that call it hold nothing that needs a destructor.
void LeavePng(png_structp png, png_const_charp) { longjmp(png_jmpbuf(png), 1); }
void SkipWarning(png_structp, png_const_charp) {}

class PngReader {
 public:
  explicit PngReader(absl::string_view data) : data_(data) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, LeavePng, SkipWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool Start(int channels, int bits);  // sets size()
  bool ReadRows(uint8_t* pixels);
  const PngSize& size() const { return size_; }
  bool is_too_large() const {
    return size_.width >= kMostPngSide || size_.height >= kMostPngSide ||
           size_.width * size_.height >= kMostPngPixels;
  }

 private:
  static void Read(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > self->data_.size() - self->at_) png_error(png, "cut off");
    std::memcpy(to, self->data_.data() + self->at_, count);
    self->at_ += count;
  }
  void SetTransformations(int color, int depth, bool has_transparency);

  const absl::string_view data_;
  size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  PngSize size_;
  int bits_ = 8;
  bool widens_ = false;  // 8 bits in the file, 16 wanted
  std::vector<png_bytep> rows_;
};

bool PngReader::Start(int channels, int bits) {
  if (info_ == nullptr) return false;
  bits_ = bits;
  size_.channels = channels;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_set_read_fn(png_, this, Read);
  png_read_info(png_, info_);
  const int depth = png_get_bit_depth(png_, info_), color = png_get_color_type(png_, info_);
  const bool has_transparency = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
  if (size_.channels == 0) {
    size_.channels = color == PNG_COLOR_TYPE_PALETTE ? (has_transparency ? 4 : 3)
                                                     : png_get_channels(png_, info_);
  }
  size_.height = png_get_image_height(png_, info_);
  size_.width = png_get_image_width(png_, info_);
  if (size_.height == 0 || size_.width == 0) return false;
  if (is_too_large()) return true;  // nothing more is asked of it
  // Deflate packs at most 1032 bytes into one.
  const int64_t packed = static_cast<int64_t>(png_get_rowbytes(png_, info_)) * size_.height;
  if (packed / 1040 > static_cast<int64_t>(data_.size())) return false;
  SetTransformations(color, depth, has_transparency);
  png_read_update_info(png_, info_);
  const size_t row =
      static_cast<size_t>(size_.width * size_.channels) * (bits_ > 8 && !widens_ ? 2 : 1);
  return png_get_rowbytes(png_, info_) == row;
}

void PngReader::SetTransformations(int color, int depth, bool has_transparency) {
  const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
  if (size_.channels % 2 == 0) {
    if (has_transparency) {
      png_set_tRNS_to_alpha(png_);
    } else if (!has_alpha) {
      png_set_add_alpha(png_, (1u << depth) - 1, PNG_FILLER_AFTER);
    }
  } else if (has_alpha || has_transparency) {
    png_set_strip_alpha(png_);
  }
  if (depth > 8 && bits_ <= 8) png_set_strip_16(png_);
  widens_ = depth <= 8 && bits_ > 8;
  png_set_packing(png_);
  png_set_interlace_handling(png_);
  if (bits_ > 8 && !widens_) png_set_swap(png_);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
  const bool is_grey = (color & PNG_COLOR_MASK_COLOR) == 0;
  if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
  if (size_.channels < 3 && !is_grey) png_set_rgb_to_gray(png_, 1, 0.299, 0.587);
  if (size_.channels >= 3 && is_grey) png_set_gray_to_rgb(png_);
}

bool PngReader::ReadRows(uint8_t* pixels) {
  const auto row = static_cast<int64_t>(png_get_rowbytes(png_, info_));
  rows_.resize(static_cast<size_t>(size_.height));
  for (int64_t y = 0; y < size_.height; ++y) rows_[static_cast<size_t>(y)] = pixels + y * row;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_read_image(png_, rows_.data());
  png_read_end(png_, info_);
  if (widens_) {  // in place, from the end: each byte becomes both halves
    for (int64_t i = row * size_.height; i-- > 0;) {
      const uint8_t byte = pixels[i];
      pixels[2 * i] = pixels[2 * i + 1] = byte;
    }
  }
  return true;
}

class PngWriter {
 public:
  PngWriter() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, LeavePng, SkipWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  bool Run(const uint8_t* pixels, const PngSize& size, int bits, int compression);
  std::string out;

 private:
  static void Write(png_structp png, png_bytep from, size_t count) {
    static_cast<PngWriter*>(png_get_io_ptr(png))
        ->out.append(reinterpret_cast<const char*>(from), count);
  }
  static void Flush(png_structp) {}

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

bool PngWriter::Run(const uint8_t* pixels, const PngSize& size, int bits, int compression) {
  if (info_ == nullptr) return false;
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_write_fn(png_, this, Write, Flush);
  if (compression != -1) png_set_compression_level(png_, compression);
  png_set_IHDR(png_, info_, static_cast<png_uint_32>(size.width),
               static_cast<png_uint_32>(size.height), bits, kColors[size.channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png_, info_);
  if (bits > 8) png_set_swap(png_);
  const int64_t row = size.width * size.channels * bits / 8;
  for (int64_t y = 0; y < size.height; ++y) png_write_row(png_, pixels + y * row);
  png_write_end(png_, nullptr);
  return true;
}

}  // namespace

Status DecodePng(absl::string_view data, int channels, int bits,
                 absl::FunctionRef<void*(const PngSize&)> allocate) {
  PngReader decoder(data);
  if (!decoder.Start(channels, bits)) {
    return InvalidArgument("Invalid PNG. Failed to initialize decoder.");
  }
  if (decoder.is_too_large()) {
    return InvalidArgument("PNG size too large for int: ", decoder.size().width, " by ",
                           decoder.size().height);
  }
  void* pixels = allocate(decoder.size());
  if (pixels == nullptr) return ResourceExhausted("No memory for the pixels of a PNG");
  if (decoder.ReadRows(static_cast<uint8_t*>(pixels))) return absl::OkStatus();
  return InvalidArgument("Invalid PNG data, size ", data.size());
}

StatusOr<std::string> EncodePngFile(const void* pixels, const PngSize& size, int bits,
                                    int compression) {
  if (size.height <= 0 || size.width <= 0 || size.height > PNG_UINT_31_MAX ||
      size.width > PNG_UINT_31_MAX || size.channels < 1 || size.channels > 4) {
    return InvalidArgument("No PNG has the size ", size.height, " x ", size.width, " x ",
                           size.channels);
  }
  PngWriter encoder;
  if (!encoder.Run(static_cast<const uint8_t*>(pixels), size, bits, compression)) {
    return InvalidArgument("PNG encoding failed");
  }
  return std::move(encoder.out);
}

}  // namespace weft::storage
