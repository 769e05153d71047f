// SPDX-License-Identifier: Apache-2.0
// The objects of a list, one by one as its text comes in, so that a long one never lies in memory.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// Not thread-safe.
class ListReader {
 public:
  // An error of the sink ends the list and comes back.
  using Sink = std::function<Status(Json item)>;
  explicit ListReader(Sink sink) : sink_(std::move(sink)) {}

  // The next bytes.
  Status Take(absl::string_view piece);
  // What the list says besides its items, which are empty in it. Unavailable when the text has no
  // end.
  StatusOr<Json> Finish() const;

 private:
  // In `frame_` unless it belongs to an item.
  Status TakeByte(char byte);
  bool BeginsItems() const;

  const Sink sink_;
  std::string frame_;
  std::string item_;
  int depth_ = 0;  // brackets that are open
  bool is_in_items_ = false;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace weft::platform
