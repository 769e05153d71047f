// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/list_reader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

constexpr size_t kMostItemBytes = size_t{16} << 20;
constexpr size_t kMostFrameBytes = size_t{1} << 20;
// Of the bracket around the items, and inside of it.
constexpr int kItemsDepth = 2;

}  // namespace

Status ListReader::Take(absl::string_view piece) {
  for (const char byte : piece) WEFT_RETURN_IF_ERROR(TakeByte(byte));
  return absl::OkStatus();
}

bool ListReader::BeginsItems() const {
  absl::string_view before = frame_;
  before.remove_suffix(1);
  before = absl::StripTrailingAsciiWhitespace(before);
  return absl::ConsumeSuffix(&before, ":") &&
         absl::EndsWith(absl::StripTrailingAsciiWhitespace(before), "\"items\"");
}

Status ListReader::TakeByte(char byte) {
  const bool is_item = is_in_items_ && (depth_ > kItemsDepth || byte == '{');
  const bool is_between = is_in_items_ && !is_item && byte != ']';
  if (is_between) {
    return byte == ',' || absl::ascii_isspace(static_cast<unsigned char>(byte))
               ? absl::OkStatus()
               : InvalidArgument("A list has an item that is no object");
  }
  std::string& text = is_item ? item_ : frame_;
  text.push_back(byte);
  if (text.size() > (is_item ? kMostItemBytes : kMostFrameBytes)) {
    return ResourceExhausted("A list, or one of its items, is longer than ", text.size() - 1,
                             " bytes");
  }
  if (is_in_string_) {
    is_in_string_ = is_escaped_ || byte != '"';
    is_escaped_ = !is_escaped_ && byte == '\\';
    return absl::OkStatus();
  }
  if (byte == '"') is_in_string_ = true;
  if (byte == '{' || byte == '[') ++depth_;
  if (byte == '}' || byte == ']') --depth_;
  if (!is_item) {
    if (byte == '[' && depth_ == kItemsDepth && BeginsItems()) is_in_items_ = true;
    if (byte == ']' && depth_ == kItemsDepth - 1) is_in_items_ = false;
    return absl::OkStatus();
  }
  if (depth_ != kItemsDepth) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(Json item, Json::Parse(item_));
  item_.clear();
  return sink_(std::move(item));
}

StatusOr<Json> ListReader::Finish() const {
  if (depth_ != 0 || frame_.empty()) {
    return Unavailable("A list ended before its end, after ", frame_.size(),
                       " bytes besides items");
  }
  return Json::Parse(frame_);
}

}  // namespace weft::platform
