// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <jpeglib.h>

namespace weft::storage {
namespace {

constexpr int64_t kMostJpegBytes = int64_t{1} << 29;
constexpr int kMostScans = 500;  // of a progressive file: each walks over the whole picture
const JOCTET kEndOfImage[] = {0xff, JPEG_EOI};

// The library leaves by error_exit, which jumps back into the function that called it: those
// functions hold nothing that needs a destructor.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
};
void LeaveJpeg(j_common_ptr common) {
  std::longjmp(reinterpret_cast<JpegErrors*>(common->err)->back, 1);
}
void SkipMessage(j_common_ptr) {}

jpeg_error_mgr* SetErrors(JpegErrors* errors) {
  jpeg_std_error(&errors->base);
  errors->base.error_exit = LeaveJpeg;
  errors->base.output_message = SkipMessage;
  return &errors->base;
}

struct JpegSource {
  jpeg_source_mgr base;
  bool recovers;
  int64_t budget;  // bytes that may be read once more
};

// Bytes in memory. At their end the decoder stops and keeps what it has; one that recovers goes on:
// with what it has not yet taken as read, and once with an end of the picture.
boolean FillJpegBuffer(j_decompress_ptr info) {
  auto* source = reinterpret_cast<JpegSource*>(info->src);
  if (!source->recovers) return FALSE;
  if (source->base.bytes_in_buffer > 0) {
    source->budget -= static_cast<int64_t>(source->base.bytes_in_buffer) + 64;
    return source->budget > 0 ? TRUE : FALSE;
  }
  if (source->base.next_input_byte == kEndOfImage + 2) return FALSE;
  source->base.next_input_byte = kEndOfImage;
  source->base.bytes_in_buffer = 2;
  return TRUE;
}
void SkipBytes(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const auto left = static_cast<long>(info->src->bytes_in_buffer);
  const long skipped = count < left ? count : left;
  info->src->next_input_byte += skipped;
  info->src->bytes_in_buffer -= static_cast<size_t>(skipped);
}
void NothingToDo(j_decompress_ptr) {}

void SetSource(j_decompress_ptr info, JpegSource* source, absl::string_view data, bool recovers) {
  source->base.init_source = NothingToDo;
  source->base.fill_input_buffer = FillJpegBuffer;
  source->base.skip_input_data = SkipBytes;
  source->base.resync_to_restart = jpeg_resync_to_restart;
  source->base.term_source = NothingToDo;
  source->base.next_input_byte = reinterpret_cast<const JOCTET*>(data.data());
  source->base.bytes_in_buffer = data.size();
  source->recovers = recovers;
  source->budget = (int64_t{1} << 26) + 16 * static_cast<int64_t>(data.size());
  info->src = &source->base;
}

void CountScans(j_common_ptr common) {
  if (common->is_decompressor == 0) return;
  auto* info = reinterpret_cast<j_decompress_ptr>(common);
  if (info->input_scan_number > kMostScans) LeaveJpeg(common);
}

// One picture being decoded.
class JpegReader {
 public:
  JpegReader(absl::string_view data, const JpegDecoding& decoding)
      : data_(data), decoding_(decoding) {
    info_.err = SetErrors(&errors_);
    progress_.progress_monitor = CountScans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // The steps, in this order; false where the data is bad.
  bool ReadHeader();
  bool Start();  // sets size()
  bool ReadLines(uint8_t* pixels);

  const JpegSize& size() const { return size_; }

 private:
  bool IsTooLarge() const;
  void ConvertCmyk(uint8_t* line) const;
  void FillMissing(uint8_t* pixels, int64_t line);
  bool reads_cmyk() const { return info_.out_color_space == JCS_CMYK; }

  const absl::string_view data_;
  const JpegDecoding decoding_;
  JpegErrors errors_ = {};
  JpegSource source_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct info_ = {};
  JpegSize size_;
  std::vector<uint8_t> line_;  // as the library gives it: wider than the window, or CMYK
  int64_t skipped_ = 0;        // lines above the window
};

bool JpegReader::ReadHeader() {
  if (setjmp(errors_.back) != 0) return false;
  jpeg_create_decompress(&info_);
  info_.progress = &progress_;
  SetSource(&info_, &source_, data_, decoding_.recovers_truncated);
  if (jpeg_read_header(&info_, TRUE) != JPEG_HEADER_OK) return false;
  int channels = decoding_.channels;
  if (channels == 0) channels = info_.num_components < 3 ? info_.num_components : 3;
  if (channels != 1 && channels != 3) return false;
  const bool is_cmyk = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
  info_.do_fancy_upsampling = decoding_.fancy_upscaling ? TRUE : FALSE;
  info_.scale_num = 1;
  info_.scale_denom = static_cast<unsigned>(decoding_.ratio);
  info_.dct_method = decoding_.accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_calc_output_dimensions(&info_);
  size_ = {info_.output_height, info_.output_width, channels};
  return !IsTooLarge();
}

// Each block of 8 x 8 pixels takes a bit at least, but where it is coded arithmetically or missing.
bool JpegReader::IsTooLarge() const {
  if (size_.height <= 0 || size_.width <= 0) return true;
  if (size_.height * size_.width >= kMostJpegBytes / info_.num_components) return true;
  const bool may_miss = decoding_.recovers_truncated || decoding_.acceptable_fraction < 1;
  const int64_t pixels = int64_t{info_.image_height} * info_.image_width;
  return info_.arith_code == 0 && !may_miss &&
         pixels / 512 > static_cast<int64_t>(data_.size()) + 64;
}

bool JpegReader::Start() {
  if (setjmp(errors_.back) != 0) return false;
  if (jpeg_start_decompress(&info_) == FALSE) return false;
  if (decoding_.crops) {
    const JpegDecoding& d = decoding_;
    if (d.crop_width <= 0 || d.crop_height <= 0 || d.crop_x < 0 || d.crop_y < 0 ||
        d.crop_x > size_.width - d.crop_width || d.crop_y > size_.height - d.crop_height) {
      return false;
    }
    auto x = static_cast<JDIMENSION>(d.crop_x), width = static_cast<JDIMENSION>(d.crop_width);
    jpeg_crop_scanline(&info_, &x, &width);
    skipped_ = jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(d.crop_y));
    if (skipped_ != d.crop_y) return false;
    size_.height = d.crop_height;
    size_.width = d.crop_width;
  }
  return true;
}

void JpegReader::ConvertCmyk(uint8_t* line) const {
  const uint8_t* from = line_.data() + (static_cast<int64_t>(info_.output_width) - size_.width) * 4;
  for (int64_t x = 0; x < size_.width; ++x, from += 4) {
    const int k = from[3];
    for (int i = 0; i < 3; ++i) {
      *line++ = static_cast<uint8_t>(
          info_.saw_Adobe_marker != 0 ? k * from[i] / 255 : (255 - k) * (255 - from[i]) / 255);
    }
  }
}

// From `line` of the window on: the last line again, black if there is none, or black.
void JpegReader::FillMissing(uint8_t* pixels, int64_t line) {
  const int64_t stride = size_.width * size_.channels;
  for (; line < size_.height; ++line) {
    uint8_t* to = pixels + line * stride;
    if (line > 0 && decoding_.recovers_truncated) {
      std::memcpy(to, to - stride, static_cast<size_t>(stride));
    } else {
      std::memset(to, 0, static_cast<size_t>(stride));
    }
  }
}

bool JpegReader::ReadLines(uint8_t* pixels) {
  const bool is_wider = static_cast<int64_t>(info_.output_width) != size_.width;
  const size_t stride = static_cast<size_t>(size_.width * size_.channels);
  if (is_wider || reads_cmyk()) {
    line_.resize(static_cast<size_t>(info_.output_width) *
                 static_cast<size_t>(info_.output_components));
  }
  if (setjmp(errors_.back) != 0) return false;
  while (static_cast<int64_t>(info_.output_scanline) < skipped_ + size_.height) {
    const int64_t line = static_cast<int64_t>(info_.output_scanline) - skipped_;
    uint8_t* to = pixels + line * static_cast<int64_t>(stride);
    JSAMPROW row = line_.empty() ? to : line_.data();
    if (jpeg_read_scanlines(&info_, &row, 1) == 0) {
      FillMissing(pixels, line);
      const float read = static_cast<float>(line) / static_cast<float>(size_.height);
      const float least = decoding_.acceptable_fraction < 1 ? decoding_.acceptable_fraction : 1.0f;
      return decoding_.recovers_truncated || !(read < least);
    }
    if (reads_cmyk()) {
      ConvertCmyk(to);
    } else if (is_wider) {
      std::memcpy(to, line_.data() + line_.size() - stride, stride);
    }
  }
  return true;
}

Status BadJpeg() { return InvalidArgument("Invalid JPEG data or crop window."); }

// One picture being encoded.
class JpegWriter {
 public:
  JpegWriter() { info_.err = SetErrors(&errors_); }
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(out_);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;

  bool Run(const uint8_t* pixels, const JpegSize& size, const JpegEncoding& encoding,
           const std::string& marker);
  std::string Result() const { return std::string(reinterpret_cast<char*>(out_), out_size_); }

 private:
  JpegErrors errors_ = {};
  jpeg_compress_struct info_ = {};
  unsigned char* out_ = nullptr;
  unsigned long out_size_ = 0;
};

bool JpegWriter::Run(const uint8_t* pixels, const JpegSize& size, const JpegEncoding& encoding,
                     const std::string& marker) {
  if (setjmp(errors_.back) != 0) return false;
  jpeg_create_compress(&info_);
  jpeg_mem_dest(&info_, &out_, &out_size_);
  info_.image_width = static_cast<JDIMENSION>(size.width);
  info_.image_height = static_cast<JDIMENSION>(size.height);
  info_.input_components = static_cast<int>(size.channels);
  info_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info_);
  if (encoding.optimizes) info_.optimize_coding = TRUE;
  info_.density_unit = encoding.density_in_cm ? 2 : 1;
  info_.X_density = static_cast<UINT16>(encoding.x_density);
  info_.Y_density = static_cast<UINT16>(encoding.y_density);
  jpeg_set_quality(&info_, encoding.quality, TRUE);
  if (encoding.progressive) jpeg_simple_progression(&info_);
  if (!encoding.chroma_downsampling) {
    for (int i = 0; i < info_.num_components; ++i) {
      info_.comp_info[i].h_samp_factor = info_.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&info_, TRUE);
  if (!marker.empty()) {
    jpeg_write_marker(&info_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  while (info_.next_scanline < info_.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(pixels + static_cast<int64_t>(info_.next_scanline) *
                                                     size.width * size.channels);
    jpeg_write_scanlines(&info_, &row, 1);
  }
  jpeg_finish_compress(&info_);
  return true;
}

}  // namespace

Status DecodeJpeg(absl::string_view data, const JpegDecoding& decoding, AllocatePixels allocate) {
  JpegReader decoder(data, decoding);
  if (!decoder.ReadHeader() || !decoder.Start()) return BadJpeg();
  uint8_t* pixels = allocate(decoder.size());
  if (pixels == nullptr) return ResourceExhausted("No memory for the pixels of a JPEG");
  return decoder.ReadLines(pixels) ? absl::OkStatus() : BadJpeg();
}

StatusOr<JpegSize> JpegSizeOf(absl::string_view data) {
  JpegReader decoder(data, {});
  if (!decoder.ReadHeader()) return InvalidArgument("Invalid JPEG data, size ", data.size());
  return decoder.size();
}

StatusOr<std::string> EncodeJpeg(absl::Span<const uint8_t> pixels, const JpegSize& size,
                                 const JpegEncoding& encoding) {
  if (size.height <= 0 || size.width <= 0 || size.height > JPEG_MAX_DIMENSION ||
      size.width > JPEG_MAX_DIMENSION || (size.channels != 1 && size.channels != 3) ||
      static_cast<int64_t>(pixels.size()) != size.height * size.width * size.channels) {
    return InvalidArgument("JPEG encoding failed: no JPEG has the size ", size.height, " x ",
                           size.width, " x ", size.channels);
  }
  std::string marker;
  if (!encoding.xmp.empty()) {
    constexpr char kSpace[] = "http://ns.adobe.com/xap/1.0/";
    marker.assign(kSpace, sizeof(kSpace));  // with its zero
    marker += encoding.xmp;
    if (marker.size() > 65533) return InvalidArgument("xmp_metadata is too long for a JPEG");
  }
  JpegWriter encoder;
  if (!encoder.Run(pixels.data(), size, encoding, marker)) {
    return InvalidArgument("JPEG encoding failed");
  }
  return encoder.Result();
}

}  // namespace weft::storage
