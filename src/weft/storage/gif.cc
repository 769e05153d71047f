// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/gif.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gif_lib.h>

namespace weft::storage {
namespace {

struct GifSource {
  absl::string_view data;
  size_t at = 0;
};
int ReadGif(GifFileType* file, GifByteType* to, int count) {
  auto* reader = static_cast<GifSource*>(file->UserData);
  const size_t n =
      std::min(static_cast<size_t>(std::max(count, 0)), reader->data.size() - reader->at);
  if (n > 0) std::memcpy(to, reader->data.data() + reader->at, n);
  reader->at += n;
  return static_cast<int>(n);
}

struct GifCloser {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};

struct GifFrame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  int transparent = NO_TRANSPARENT_COLOR;
  std::vector<GifColorType> colors;
  std::vector<uint8_t> indices;
};

Status BadGif(size_t size, absl::string_view why) {
  return InvalidArgument("Invalid GIF data (size ", size, "), ", why);
}

// The places of lines in an interlaced picture, in the order of the data.
std::vector<int64_t> LinesOf(const GifImageDesc& image) {
  std::vector<int64_t> lines;
  const int starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4 && image.Interlace; ++pass) {
    for (int64_t y = starts[pass]; y < image.Height; y += steps[pass]) lines.push_back(y);
  }
  for (int64_t y = 0; y < image.Height && !image.Interlace; ++y) lines.push_back(y);
  return lines;
}

// What stands before an image in extensions: the index that is not painted.
Status ReadExtension(GifFileType* file, size_t size, int* transparent) {
  int code = 0;
  GifByteType* block = nullptr;
  if (DGifGetExtension(file, &code, &block) == GIF_ERROR) return BadGif(size, "bad extension");
  while (block != nullptr) {
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      *transparent = control.TransparentColor;
    }
    if (DGifGetExtensionNext(file, &block) == GIF_ERROR) return BadGif(size, "bad extension");
  }
  return absl::OkStatus();
}

// A byte of data says at most 4096 pixels. Giflib takes the memory itself only for what it reads.
StatusOr<GifFrame> ReadGifFrame(GifFileType* file, size_t size, int transparent) {
  if (DGifGetImageDesc(file) == GIF_ERROR) return BadGif(size, "bad image description");
  const GifImageDesc& image = file->Image;
  GifFrame frame{image.Left, image.Top, image.Width, image.Height, transparent, {}, {}};
  const int64_t pixels = frame.width * frame.height;
  if (pixels <= 0) return BadGif(size, "empty image");
  if (pixels / 4096 > static_cast<int64_t>(size))
    return BadGif(size, "larger than its data can say");
  const ColorMapObject* colors = image.ColorMap != nullptr ? image.ColorMap : file->SColorMap;
  if (colors == nullptr) return BadGif(size, "missing color map for a frame");
  frame.colors.assign(colors->Colors, colors->Colors + colors->ColorCount);
  frame.indices.resize(static_cast<size_t>(pixels));
  for (const int64_t line : LinesOf(image)) {
    if (DGifGetLine(file, frame.indices.data() + line * frame.width,
                    static_cast<int>(frame.width)) == GIF_ERROR) {
      return BadGif(size, "cut off");
    }
  }
  return frame;
}

StatusOr<std::vector<GifFrame>> ReadFrames(GifFileType* file, size_t size, bool first_only) {
  std::vector<GifFrame> frames;
  int transparent = NO_TRANSPARENT_COLOR;
  GifRecordType type = UNDEFINED_RECORD_TYPE;
  int64_t pixels = 0;
  while (!(first_only && !frames.empty())) {
    Status status;
    if (DGifGetRecordType(file, &type) == GIF_ERROR) {
      status = BadGif(size, "bad record");
    } else if (type == TERMINATE_RECORD_TYPE) {
      break;
    } else if (type == EXTENSION_RECORD_TYPE) {
      status = ReadExtension(file, size, &transparent);
    } else if (type == IMAGE_DESC_RECORD_TYPE) {
      StatusOr<GifFrame> frame = ReadGifFrame(file, size, transparent);
      status = frame.status();
      if (frame.ok()) {
        pixels += frame->width * frame->height;
        frames.push_back(*std::move(frame));
      }
      if (pixels > int64_t{1} << 30) return BadGif(size, "its frames are too large");
      transparent = NO_TRANSPARENT_COLOR;
    }
    if (status.ok()) continue;
    if (frames.empty()) return status;
    break;  // what is there counts
  }
  if (frames.empty()) return BadGif(size, "gif file does not contain any image");
  return frames;
}

Status PaintFrame(const GifFrame& frame, bool is_first, const GifSize& size, uint8_t* canvas) {
  const int64_t right = std::min(frame.left + frame.width, size.width);
  const int64_t bottom = std::min(frame.top + frame.height, size.height);
  for (int64_t y = std::min(frame.top, size.height); y < bottom; ++y) {
    for (int64_t x = std::min(frame.left, size.width); x < right; ++x) {
      const int index =
          frame.indices[static_cast<size_t>((y - frame.top) * frame.width + x - frame.left)];
      uint8_t* to = canvas + (y * size.width + x) * 3;
      if (index == frame.transparent) {
        if (is_first) std::memset(to, 0, 3);
        continue;
      }
      if (static_cast<size_t>(index) >= frame.colors.size()) {
        return InvalidArgument("found color index ", index, " outside of color map range ",
                               frame.colors.size());
      }
      const GifColorType& color = frame.colors[static_cast<size_t>(index)];
      to[0] = color.Red;
      to[1] = color.Green;
      to[2] = color.Blue;
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status DecodeGif(absl::string_view data, bool first_only,
                 absl::FunctionRef<uint8_t*(const GifSize&)> allocate) {
  GifSource reader{data};
  int error = 0;
  const std::unique_ptr<GifFileType, GifCloser> file(DGifOpen(&reader, ReadGif, &error));
  if (file == nullptr) return BadGif(data.size(), "failed to open gif file");
  WEFT_ASSIGN_OR_RETURN(const std::vector<GifFrame> frames,
                        ReadFrames(file.get(), data.size(), first_only));
  GifSize size{static_cast<int64_t>(frames.size()), 0, 0};
  for (const GifFrame& frame : frames) {
    size.height = std::max(size.height, frame.height);
    size.width = std::max(size.width, frame.width);
  }
  uint8_t* pixels = allocate(size);
  if (pixels == nullptr) return ResourceExhausted("No memory for the pixels of a GIF");
  const auto bytes = static_cast<size_t>(size.height * size.width * 3);
  for (size_t i = 0; i < frames.size(); ++i) {
    uint8_t* canvas = pixels + i * bytes;
    if (i == 0) {
      std::memset(canvas, 0, bytes);
    } else {
      std::memcpy(canvas, canvas - bytes, bytes);
    }
    WEFT_RETURN_IF_ERROR(PaintFrame(frames[i], i == 0, size, canvas));
  }
  return absl::OkStatus();
}

}  // namespace weft::storage
