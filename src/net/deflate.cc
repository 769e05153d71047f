// SPDX-License-Identifier: Apache-2.0
#include "net/deflate.h"

#include <algorithm>

#include <zlib.h>

namespace weft {
namespace {

constexpr size_t kFirstGuess = 4;  // texts become at least so many times smaller, mostly

Bytef* Bytes(absl::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

std::string Deflate(absl::string_view text) {
  uLongf size = ::compressBound(text.size());
  std::string bytes(size, '\0');
  // Nothing can fail but for want of memory.
  if (::compress2(Bytes(bytes), &size, Bytes(text), text.size(), Z_BEST_SPEED) != Z_OK) size = 0;
  bytes.resize(size);
  return bytes;
}

StatusOr<std::string> Inflate(absl::string_view bytes, size_t most) {
  for (size_t guess = std::min(most, bytes.size() * kFirstGuess + 64);;
       guess = std::min(most, guess * 2)) {
    std::string text(guess, '\0');
    uLongf size = guess;
    const int result = ::uncompress(Bytes(text), &size, Bytes(bytes), bytes.size());
    if (result == Z_OK) {
      text.resize(size);
      return text;
    }
    if (result != Z_BUF_ERROR || guess == most) {
      return DataLoss("Deflated data are damaged: ", bytes.size(), " bytes are no text of at most ",
                      most);
    }
  }
}

}  // namespace weft
