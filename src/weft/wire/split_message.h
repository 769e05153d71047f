// SPDX-License-Identifier: Apache-2.0
// A message taken apart: its tensors, and all else. For the parsers of this room.
#pragma once

#include <string>

#include <google/protobuf/io/coded_stream.h>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/wire/payload.h"

namespace weft::wire {

size_t TotalSize(absl::Span<const absl::string_view> chunks);
// Of a message over 2 GB, which protobuf cannot carry.
Status TooLarge(size_t size);

// Hands fields of number `tensor_field` to `read_tensor` and collects the others' bytes in `rest`.
// The first error of a tensor is kept while the rest is read on.
Status SplitMessage(
    absl::Span<const absl::string_view> chunks, int tensor_field,
    absl::FunctionRef<Status(google::protobuf::io::CodedInputStream*, int size)> read_tensor,
    std::string* rest, Status* tensor_error);

}  // namespace weft::wire
