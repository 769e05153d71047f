// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/split_message.h"

#include <limits>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace weft::wire {
namespace {

using google::protobuf::io::CodedInputStream;
using Wire = google::protobuf::internal::WireFormatLite;

}  // namespace

size_t TotalSize(absl::Span<const absl::string_view> chunks) {
  size_t total = 0;
  for (absl::string_view chunk : chunks) total += chunk.size();
  return total;
}

Status TooLarge(size_t size) {
  return InvalidArgument("A message has at most 2 GB, got bytes: ", size);
}

Status SplitMessage(absl::Span<const absl::string_view> chunks, int tensor_field,
                    absl::FunctionRef<Status(CodedInputStream*, int size)> read_tensor,
                    std::string* rest, Status* tensor_error) {
  if (const size_t size = TotalSize(chunks); size > std::numeric_limits<int32_t>::max()) {
    return TooLarge(size);
  }
  const Status malformed = InvalidArgument("The request is malformed");
  ChunkStream stream(chunks);
  CodedInputStream in(&stream);
  google::protobuf::io::StringOutputStream rest_stream(rest);
  google::protobuf::io::CodedOutputStream rest_out(&rest_stream);
  const uint32_t tensor_tag = Wire::MakeTag(tensor_field, Wire::WIRETYPE_LENGTH_DELIMITED);
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != tensor_tag) {
      if (!Wire::SkipField(&in, tag, &rest_out)) return malformed;
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size) || size > std::numeric_limits<int32_t>::max()) return malformed;
    const int end = in.CurrentPosition() + static_cast<int>(size);
    const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(size));
    const Status read = read_tensor(&in, static_cast<int>(size));
    if (!read.ok() && tensor_error->ok()) *tensor_error = read;
    if (in.CurrentPosition() < end && !in.Skip(end - in.CurrentPosition())) return malformed;
    in.PopLimit(limit);
  }
  return in.ConsumedEntireMessage() ? absl::OkStatus() : malformed;
}

}  // namespace weft::wire
