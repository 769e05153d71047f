// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/watch_reader.h"

#include <memory>

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostLineBytes = size_t{16} << 20;

}  // namespace

Status WatchReader::Take(absl::string_view piece) {
  while (true) {
    const size_t end = piece.find('\n');
    if (end == absl::string_view::npos) break;
    const absl::string_view line = piece.substr(0, end);
    if (rest_.empty()) {
      WEFT_RETURN_IF_ERROR(TakeLine(line));
    } else {
      rest_.append(line.data(), line.size());
      const std::string whole = std::exchange(rest_, {});
      WEFT_RETURN_IF_ERROR(TakeLine(whole));
    }
    piece.remove_prefix(end + 1);
  }
  rest_.append(piece.data(), piece.size());
  if (rest_.size() <= kMostLineBytes) return absl::OkStatus();
  return ResourceExhausted("An event of the watch of ", type_.Id(), " is longer than ",
                           kMostLineBytes, " bytes");
}

void DropFieldOwners(Json* object) {
  if (Json* const meta = object->FindMutable("metadata")) meta->Erase("managedFields");
}

Status WatchReader::TakeLine(absl::string_view line) {
  if (line.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(Json parsed, Json::Parse(line));
  const std::string kind = StringField(parsed, {"type"});
  Json* const object = parsed.FindMutable("object");
  if (object == nullptr) {
    return Unavailable("An event of the watch of ", type_.Id(), " has no object");
  }
  if (kind == "ERROR") {
    const Status error = StatusFromObject(*object, 500);
    return error.ok() ? Unavailable("The watch of ", type_.Id(), " failed without an error")
                      : error;
  }
  static constexpr std::pair<const char*, WatchEvent::Kind> kKinds[] = {
      {"ADDED", WatchEvent::Kind::kAdded},
      {"MODIFIED", WatchEvent::Kind::kModified},
      {"DELETED", WatchEvent::Kind::kDeleted},
      {"BOOKMARK", WatchEvent::Kind::kBookmark}};
  for (const auto& [name, value] : kKinds) {
    if (kind != name) continue;
    std::string revision = RevisionOf(*object);
    // Without it nobody knows where to go on.
    if (revision.empty()) {
      return Unavailable("An event of the watch of ", type_.Id(), " has no resourceVersion");
    }
    revision_ = std::move(revision);
    DropFieldOwners(object);
    sink_(WatchEvent{value, std::make_shared<const Json>(std::move(*object)), absl::OkStatus()});
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
