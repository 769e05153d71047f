// SPDX-License-Identifier: Apache-2.0
// The log of a container, which leaves room on its disk: whoever fills that keeps the control plane
// from writing its objects, so that nobody could even delete the pod.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/files.h"

namespace weft::platform {

// Not thread-safe.
class LogFile {
 public:
  struct Room {
    uint64_t free = 0;
    uint64_t whole = 0;
  };
  // What the disk of a file has left; may fail, and is then not asked for.
  using RoomFinder = std::function<StatusOr<Room>(const std::string& path)>;
  static StatusOr<Room> FindRoom(const std::string& path);

  // With its folders.
  static StatusOr<std::unique_ptr<LogFile>> Open(const std::string& path,
                                                 RoomFinder find_room = FindRoom);
  // Each line with its time. Those that find too little room are left out, which the log says.
  Status Append(const std::vector<std::string>& lines, absl::Time now);

 private:
  LogFile(std::string path, std::unique_ptr<WritableFile> file, RoomFinder find_room)
      : path_(std::move(path)), file_(std::move(file)), find_room_(std::move(find_room)) {}
  // Looks now and then; a line for the log when the answer has changed.
  std::string LookForRoom(size_t bytes);

  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
  const RoomFinder find_room_;
  size_t unlooked_ = 0;  // bytes since the last look
  bool has_room_ = true;
  uint64_t lost_ = 0;  // bytes that were left out
};

}  // namespace weft::platform
