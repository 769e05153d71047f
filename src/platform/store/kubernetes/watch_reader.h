// SPDX-License-Identifier: Apache-2.0
// The events of a watch, from the stream in which an API server sends them: one JSON object a line.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Who wrote which field: half of an object's text, and of no use to whoever keeps many. The server
// keeps it when an update does not have it.
void DropFieldOwners(Json* object);

// Not thread-safe. Borrows the type.
class WatchReader {
 public:
  WatchReader(const ResourceType* type, WatchSink sink) : type_(*type), sink_(std::move(sink)) {}

  // The next bytes. The server's own error, or what is wrong with the stream: nothing may follow.
  Status Take(absl::string_view piece);
  // Up to which everything was told; empty before the first event.
  const std::string& revision() const { return revision_; }

 private:
  Status TakeLine(absl::string_view line);

  const ResourceType& type_;
  const WatchSink sink_;
  std::string rest_;  // of a line whose end has not come
  std::string revision_;
};

}  // namespace weft::platform
