// SPDX-License-Identifier: Apache-2.0
#include "net/spdy.h"

#include <utility>

#include <zlib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace weft {
namespace {

constexpr uint32_t kControl = 0x80030000;  // of version 3
constexpr uint8_t kLast = 1;
constexpr size_t kFrameHeadBytes = 8;
constexpr size_t kMostDataFrame = 1 << 20;
constexpr size_t kMostControlFrame = 64 << 10;
constexpr size_t kMostInflatedBytes = 256 << 10;  // inflated
constexpr uint32_t kCancel = 5;

enum Type : uint32_t { kSynStream = 1, kSynReply = 2, kRstStream = 3, kPing = 6, kGoAwayType = 7 };

void AppendNumber(uint32_t value, std::string* bytes) {
  for (const int shift : {24, 16, 8, 0}) bytes->push_back(static_cast<char>(value >> shift));
}

uint32_t NumberAt(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Names and values that headers often have.
constexpr char kHeaderWords[] =
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|acc"
    "ept-ranges|age|allow|authorization|cache-control|connection|content-base|content-encoding|co"
    "ntent-language|content-length|content-location|content-md5|content-range|content-type|date|e"
    "tag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified"
    "-since|last-modified|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|ran"
    "ge|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|warni"
    "ng|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-ali"
    "ve|origin";

// What both sides' compression begins with, by the protocol's definition: names that headers often
// have, each behind its length, then pieces of values.
const std::string& Dictionary() {
  static const auto* const dictionary = [] {
    auto* const bytes = new std::string();
    for (const absl::string_view word : absl::StrSplit(kHeaderWords, '|')) {
      AppendNumber(static_cast<uint32_t>(word.size()), bytes);
      bytes->append(word.data(), word.size());
    }
    *bytes +=
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
        "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
        "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, "
        "Tue, "
        "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
        "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
        "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
    return bytes;
  }();
  return *dictionary;
}

const Bytef* DictionaryBytes() { return reinterpret_cast<const Bytef*>(Dictionary().data()); }

void Point(z_stream* stream, absl::string_view input) {
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
  stream->avail_in = static_cast<uInt>(input.size());
}

std::string ControlFrame(uint32_t type, absl::string_view payload) {
  std::string frame;
  AppendNumber(kControl | type, &frame);
  AppendNumber(static_cast<uint32_t>(payload.size()), &frame);  // and no flags
  frame.append(payload.data(), payload.size());
  return frame;
}

}  // namespace

class SpdyReader::Inflater {
 public:
  Inflater() { ::inflateInit(&stream_); }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  StatusOr<std::string> Inflate(absl::string_view block) {
    std::string text;
    char buffer[4096];
    Point(&stream_, block);
    while (true) {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof(buffer);
      int result = ::inflate(&stream_, Z_SYNC_FLUSH);
      if (result == Z_NEED_DICT) {
        result = ::inflateSetDictionary(&stream_, DictionaryBytes(),
                                        static_cast<uInt>(Dictionary().size()));
        if (result == Z_OK) continue;
      }
      if (result != Z_OK && result != Z_BUF_ERROR)
        return InvalidArgument("The headers of a SPDY frame cannot be inflated");
      const size_t count = sizeof(buffer) - stream_.avail_out;
      text.append(buffer, count);
      if (text.size() > kMostInflatedBytes)
        return InvalidArgument("The headers of a SPDY frame are too long");
      if (count < sizeof(buffer)) return text;
    }
  }

 private:
  z_stream stream_ = {};
};

SpdyReader::SpdyReader() : inflater_(std::make_unique<Inflater>()) {}
SpdyReader::~SpdyReader() = default;

StatusOr<std::map<std::string, std::string>> SpdyReader::ReadHeaders(absl::string_view block) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, inflater_->Inflate(block));
  absl::string_view rest = text;
  const auto take = [&rest]() -> std::optional<std::string> {
    if (rest.size() < 4 || rest.size() - 4 < NumberAt(rest, 0)) return std::nullopt;
    const uint32_t size = NumberAt(rest, 0);
    const std::string taken(rest.substr(4, size));
    rest.remove_prefix(4 + size);
    return taken;
  };
  if (rest.size() < 4) return InvalidArgument("A SPDY frame has no headers");
  uint32_t count = NumberAt(rest, 0);
  rest.remove_prefix(4);
  std::map<std::string, std::string> headers;
  for (; count > 0; --count) {
    const std::optional<std::string> name = take();
    std::optional<std::string> value = name.has_value() ? take() : std::nullopt;
    if (!value.has_value()) return InvalidArgument("The headers of a SPDY frame are cut off");
    headers[absl::AsciiStrToLower(*name)] = *std::move(value);
  }
  return headers;
}

StatusOr<std::optional<SpdyFrame>> SpdyReader::Next(absl::string_view* input) {
  if (input->size() < kFrameHeadBytes) return std::optional<SpdyFrame>();
  const uint32_t first = NumberAt(*input, 0);
  const uint32_t second = NumberAt(*input, 4);
  const bool is_control = (first & 0x80000000) != 0;
  const uint32_t length = second & 0xffffff;
  if (is_control && (first & 0xffff0000) != kControl)
    return InvalidArgument("A SPDY frame is of another version than 3");
  if (length > (is_control ? kMostControlFrame : kMostDataFrame))
    return InvalidArgument("A SPDY frame is too long: ", length, " bytes");
  if (input->size() < kFrameHeadBytes + length) return std::optional<SpdyFrame>();
  const absl::string_view payload = input->substr(kFrameHeadBytes, length);
  SpdyFrame frame;
  frame.is_last = ((second >> 24) & kLast) != 0;
  if (!is_control) {
    frame.kind = SpdyFrame::Kind::kData;
    frame.stream = first;
    frame.data = std::string(payload);
    input->remove_prefix(kFrameHeadBytes + length);
    return std::optional<SpdyFrame>(std::move(frame));
  }
  const uint32_t type = first & 0xffff;
  const size_t least = type == kSynStream ? 10 : type == kGoAwayType || type > kPing ? 0 : 4;
  if (length < least) return InvalidArgument("A SPDY frame is too short: ", length, " bytes");
  if (length >= 4) frame.stream = NumberAt(payload, 0);
  switch (type) {
    case kSynStream: {
      frame.kind = SpdyFrame::Kind::kOpen;
      WEFT_ASSIGN_OR_RETURN(frame.headers, ReadHeaders(payload.substr(10)));
      break;
    }
    case kRstStream:
      frame.kind = SpdyFrame::Kind::kReset;
      break;
    case kPing:
      frame.kind = SpdyFrame::Kind::kPing;
      break;
    case kGoAwayType:
      frame.kind = SpdyFrame::Kind::kGoAway;
      break;
    default:
      break;
  }
  input->remove_prefix(kFrameHeadBytes + length);
  return std::optional<SpdyFrame>(std::move(frame));
}

class SpdyWriter::Deflater {
 public:
  Deflater() {
    is_good_ = ::deflateInit(&stream_, Z_BEST_SPEED) == Z_OK &&
               ::deflateSetDictionary(&stream_, DictionaryBytes(),
                                      static_cast<uInt>(Dictionary().size())) == Z_OK;
  }
  ~Deflater() { ::deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  StatusOr<std::string> Deflate(absl::string_view text) {
    char buffer[256];
    Point(&stream_, text);
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = sizeof(buffer);
    if (!is_good_ || ::deflate(&stream_, Z_SYNC_FLUSH) != Z_OK || stream_.avail_out == 0)
      return Internal("The headers of a SPDY frame cannot be deflated");
    return std::string(buffer, sizeof(buffer) - stream_.avail_out);
  }

 private:
  z_stream stream_ = {};
  bool is_good_ = false;
};

SpdyWriter::SpdyWriter() : deflater_(std::make_unique<Deflater>()) {}
SpdyWriter::~SpdyWriter() = default;

StatusOr<std::string> SpdyWriter::Accept(uint32_t stream) {
  std::string no_headers;
  AppendNumber(0, &no_headers);
  WEFT_ASSIGN_OR_RETURN(const std::string block, deflater_->Deflate(no_headers));
  std::string payload;
  AppendNumber(stream, &payload);
  return ControlFrame(kSynReply, payload + block);
}

std::string SpdyWriter::Data(uint32_t stream, absl::string_view bytes, bool is_last) {
  std::string frame;
  AppendNumber(stream, &frame);
  AppendNumber((is_last ? uint32_t{kLast} << 24 : 0) | static_cast<uint32_t>(bytes.size()), &frame);
  frame.append(bytes.data(), bytes.size());
  return frame;
}

std::string SpdyWriter::Reset(uint32_t stream) {
  std::string payload;
  AppendNumber(stream, &payload);
  AppendNumber(kCancel, &payload);
  return ControlFrame(kRstStream, payload);
}

std::string SpdyWriter::Ping(uint32_t number) {
  std::string payload;
  AppendNumber(number, &payload);
  return ControlFrame(kPing, payload);
}

std::string SpdyWriter::GoAway() {
  std::string payload;
  AppendNumber(0, &payload);
  AppendNumber(0, &payload);
  return ControlFrame(kGoAwayType, payload);
}

}  // namespace weft
