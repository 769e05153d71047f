// SPDX-License-Identifier: Apache-2.0
#include "platform/store/packed_texts.h"

#include <cstdint>
#include <cstring>
#include <limits>

namespace weft::platform {
namespace {

// What zlib looks back over, as a power of two, and how large its tables are: 40 KB in all, enough
// for a description of a pod or a job.
constexpr int kWindowBits = 12;
constexpr int kMemoryLevel = 5;
// Raw: a text carries neither header nor checksum.
constexpr int kRaw = -kWindowBits;

// In front of each: how long the text is, or 0 when it follows as it is.
using Header = uint32_t;

Bytef* Bytes(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }

}  // namespace

PackedTexts::~PackedTexts() {
  inflateEnd(&inflate_);
  deflateEnd(&deflate_);
}

std::string PackedTexts::Pack(absl::string_view text) {
  if (text.empty()) return "";
  std::string packed;
  if (!Deflate(text, &packed)) {
    packed.assign(sizeof(Header), '\0');
    packed.append(text.data(), text.size());
  }
  packed.shrink_to_fit();
  return packed;
}

bool PackedTexts::Begin() {
  return inflateInit2(&inflate_, kRaw) == Z_OK &&
         deflateInit2(&deflate_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, kMemoryLevel,
                      Z_DEFAULT_STRATEGY) == Z_OK;
}

bool PackedTexts::Deflate(absl::string_view text, std::string* packed) {
  if (text.size() > std::numeric_limits<int32_t>::max()) return false;
  if (dictionary_.empty()) {
    dictionary_.assign(text.data(), text.size());
    is_ready_ = Begin();
  }
  if (!is_ready_) return false;
  if (deflateReset(&deflate_) != Z_OK) return false;
  if (deflateSetDictionary(&deflate_, Bytes(dictionary_.data()),
                           static_cast<uInt>(dictionary_.size())) != Z_OK) {
    return false;
  }
  packed->resize(sizeof(Header) + text.size());
  const Header size = static_cast<Header>(text.size());
  std::memcpy(packed->data(), &size, sizeof(size));
  deflate_.next_in = Bytes(text.data());
  deflate_.avail_in = size;
  deflate_.next_out = Bytes(packed->data() + sizeof(Header));
  deflate_.avail_out = size;
  if (deflate(&deflate_, Z_FINISH) != Z_STREAM_END) return false;
  packed->resize(packed->size() - deflate_.avail_out);
  return true;
}

std::string PackedTexts::Unpack(absl::string_view packed) const {
  if (packed.size() < sizeof(Header)) return "";
  Header size = 0;
  std::memcpy(&size, packed.data(), sizeof(size));
  packed.remove_prefix(sizeof(Header));
  if (size == 0) return std::string(packed);
  std::string text(size, '\0');
  if (inflateReset(&inflate_) != Z_OK) return "";
  inflateSetDictionary(&inflate_, Bytes(dictionary_.data()), static_cast<uInt>(dictionary_.size()));
  inflate_.next_in = Bytes(packed.data());
  inflate_.avail_in = static_cast<uInt>(packed.size());
  inflate_.next_out = Bytes(text.data());
  inflate_.avail_out = size;
  return inflate(&inflate_, Z_FINISH) == Z_STREAM_END ? text : "";
}

std::shared_ptr<const Json> PackedTexts::UnpackJson(absl::string_view packed) const {
  const std::string text = Unpack(packed);
  JsonLimits limits;
  limits.max_bytes = text.size();
  // A value that was once there: it cannot fail.
  return std::make_shared<const Json>(Json::Parse(text, limits).value_or(Json()));
}

}  // namespace weft::platform
