// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/deflate.h"

#include <algorithm>

#include <zlib.h>

namespace weft::storage {

StatusOr<std::string> Inflate(absl::string_view compressed, size_t most, DeflateForm form) {
  z_stream zlib = {};
  if (inflateInit2(&zlib, form == DeflateForm::kRaw ? -MAX_WBITS : MAX_WBITS) != Z_OK) {
    return ResourceExhausted("zlib has no memory");
  }
  std::string out;
  size_t taken = 0;
  int done = Z_OK;
  while (done == Z_OK) {
    if (zlib.avail_in == 0 && taken < compressed.size()) {
      const size_t some = std::min<size_t>(compressed.size() - taken, size_t{1} << 30);
      zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data() + taken));
      zlib.avail_in = static_cast<uInt>(some);
      taken += some;
    }
    const size_t before = out.size();
    const size_t room = std::min<size_t>(std::max<size_t>(before, 4096), most + 1 - before);
    out.resize(before + room);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    zlib.avail_out = static_cast<uInt>(std::min<size_t>(room, size_t{1} << 30));
    const size_t given = zlib.avail_out;
    done = inflate(&zlib, Z_NO_FLUSH);
    out.resize(before + given - zlib.avail_out);
    if (out.size() > most) break;
    if (done == Z_OK && zlib.avail_in == 0 && taken == compressed.size() && zlib.avail_out > 0) {
      break;  // cut short
    }
  }
  inflateEnd(&zlib);
  if (out.size() > most) return DataLoss("compressed bytes hold more than the ", most, " expected");
  if (done != Z_STREAM_END) return DataLoss("compressed bytes are damaged or cut short");
  return out;
}

uint32_t Crc32(absl::string_view bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const size_t some = std::min<size_t>(bytes.size(), size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(some));
    bytes.remove_prefix(some);
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace weft::storage
