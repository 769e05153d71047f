// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/png.h"

#include <png.h>

namespace weft::storage {

StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height, int64_t width,
                                int64_t channels) {
  constexpr int64_t kMostPixels = int64_t{1} << 28;
  if (channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument("A PNG needs 1, 3 or 4 channels, got ", channels);
  }
  if (height <= 0 || width <= 0 || height > kMostPixels / width ||
      static_cast<int64_t>(pixels.size()) != height * width * channels) {
    return InvalidArgument("A picture of ", height, " x ", width, " x ", channels,
                           " cannot be made of ", pixels.size(), " bytes");
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format =
      channels == 1 ? PNG_FORMAT_GRAY : (channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA);
  png_alloc_size_t size = 0;
  const auto write = [&](void* memory) {
    return png_image_write_to_memory(&image, memory, &size, 0, pixels.data(), 0, nullptr) != 0;
  };
  if (!write(nullptr)) return Internal("PNG encoder: ", image.message);
  std::string encoded(size, '\0');
  if (!write(encoded.data())) return Internal("PNG encoder: ", image.message);
  encoded.resize(size);
  return encoded;
}

}  // namespace weft::storage
