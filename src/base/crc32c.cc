// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace weft {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // bit-reversed

using Table = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the register after byte b and then k zero bytes, from an all-zero register.
constexpr Table MakeTables() {
  Table tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}
constexpr Table kTables = MakeTables();

uint64_t LoadLittleEndian64(const unsigned char* p) {
  uint64_t value = 0;
  std::memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

}  // namespace

namespace crc32c_internal {

uint32_t ExtendPortable(uint32_t crc, absl::string_view data) {
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
  size_t left = data.size();
  crc = ~crc;
  for (; left >= 8; left -= 8, p += 8) {
    const uint64_t word = LoadLittleEndian64(p) ^ crc;
    crc = 0;
    for (int byte = 0; byte < 8; ++byte) {
      crc ^= kTables[static_cast<size_t>(7 - byte)][(word >> (8 * byte)) & 0xff];
    }
  }
  for (; left > 0; --left, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

namespace {

// The instruction takes three cycles and one may start in each: three streams side by side hide
// that.
constexpr size_t kLongStream = 8192;
constexpr size_t kShortStream = 256;

// Moves a register over `length` zero bytes: the map is linear, so four table look-ups do it.
class ZeroShift {
 public:
  explicit ZeroShift(size_t length) {
    std::array<uint32_t, 32> columns{};
    for (size_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = uint32_t{1} << bit;
      for (size_t i = 0; i < length; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xff];
      columns[bit] = crc;
    }
    for (size_t position = 0; position < 4; ++position) {
      for (size_t byte = 0; byte < 256; ++byte) {
        uint32_t crc = 0;
        for (size_t bit = 0; bit < 8; ++bit) {
          if (byte >> bit & 1) crc ^= columns[position * 8 + bit];
        }
        tables_[position][byte] = crc;
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return tables_[0][crc & 0xff] ^ tables_[1][crc >> 8 & 0xff] ^ tables_[2][crc >> 16 & 0xff] ^
           tables_[3][crc >> 24];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> tables_;
};

__attribute__((target("sse4.2"))) uint64_t ExtendThreeStreams(uint64_t crc, const unsigned char** p,
                                                              size_t* left, size_t stream,
                                                              const ZeroShift& shift) {
  while (*left >= 3 * stream) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < stream; i += 8) {
      crc = _mm_crc32_u64(crc, LoadLittleEndian64(*p + i));
      second = _mm_crc32_u64(second, LoadLittleEndian64(*p + stream + i));
      third = _mm_crc32_u64(third, LoadLittleEndian64(*p + 2 * stream + i));
    }
    crc = shift(static_cast<uint32_t>(crc)) ^ second;
    crc = shift(static_cast<uint32_t>(crc)) ^ third;
    *p += 3 * stream;
    *left -= 3 * stream;
  }
  return crc;
}

}  // namespace

bool HasHardware() { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t crc32, absl::string_view data) {
  static const ZeroShift* const long_shift = new ZeroShift(kLongStream);
  static const ZeroShift* const short_shift = new ZeroShift(kShortStream);
  const auto* p = reinterpret_cast<const unsigned char*>(data.data());
  size_t left = data.size();
  uint64_t crc = ~crc32;
  crc = ExtendThreeStreams(crc, &p, &left, kLongStream, *long_shift);
  crc = ExtendThreeStreams(crc, &p, &left, kShortStream, *short_shift);
  for (; left >= 8; left -= 8, p += 8) crc = _mm_crc32_u64(crc, LoadLittleEndian64(p));
  for (; left > 0; --left, ++p) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *p);
  return ~static_cast<uint32_t>(crc);
}

#else

bool HasHardware() { return false; }
uint32_t ExtendHardware(uint32_t crc, absl::string_view data) { return ExtendPortable(crc, data); }

#endif

}  // namespace crc32c_internal

uint32_t Crc32cExtend(uint32_t crc, absl::string_view data) {
  static const bool has_hardware = crc32c_internal::HasHardware();
  return has_hardware ? crc32c_internal::ExtendHardware(crc, data)
                      : crc32c_internal::ExtendPortable(crc, data);
}

}  // namespace weft
