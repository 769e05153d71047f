// SPDX-License-Identifier: Apache-2.0
// Very many texts that are much like one another, held small.
#pragma once

#include <memory>
#include <string>

#include <zlib.h>

#include "absl/strings/string_view.h"

#include "net/json.h"

namespace weft::platform {

// Deflates each text (RFC 1951) with the first one as the dictionary, so that a text costs little
// more than what it has of its own. Not thread-safe.
class PackedTexts {
 public:
  PackedTexts() = default;
  ~PackedTexts();
  PackedTexts(const PackedTexts&) = delete;
  PackedTexts& operator=(const PackedTexts&) = delete;

  // Empty for an empty text alone. What does not become smaller is held as it is.
  std::string Pack(absl::string_view text);
  // `packed` is from Pack of this same object.
  std::string Unpack(absl::string_view packed) const;
  // Of a text that Json::Dump has written.
  std::shared_ptr<const Json> UnpackJson(absl::string_view packed) const;

 private:
  bool Begin();
  bool Deflate(absl::string_view text, std::string* packed);

  std::string dictionary_;
  z_stream deflate_ = {};
  mutable z_stream inflate_ = {};
  bool is_ready_ = false;
};

}  // namespace weft::platform
