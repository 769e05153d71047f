// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/log_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/statvfs.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/posix_file.h"

namespace weft::platform {
namespace {

// Programs that print less than this are never in the way.
constexpr size_t kLookEvery = 64 << 10;
constexpr uint64_t kMostReserve = uint64_t{64} << 20;

// For objects and their journal.
uint64_t ReserveOf(const LogFile::Room& room) { return std::min(kMostReserve, room.whole / 4); }

}  // namespace

StatusOr<LogFile::Room> LogFile::FindRoom(const std::string& path) {
  struct statvfs space = {};
  if (::statvfs(path.c_str(), &space) != 0) return ErrnoStatus(errno, "look at the disk of", path);
  return Room{uint64_t{space.f_bavail} * space.f_frsize, uint64_t{space.f_blocks} * space.f_frsize};
}

StatusOr<std::unique_ptr<LogFile>> LogFile::Open(const std::string& path, RoomFinder find_room) {
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(ParentPath(path)));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        files.OpenWrite(path, WriteMode::kTruncate));
  return std::unique_ptr<LogFile>(new LogFile(path, std::move(file), std::move(find_room)));
}

std::string LogFile::LookForRoom(size_t bytes) {
  unlooked_ += bytes;
  if (unlooked_ < kLookEvery) return "";
  unlooked_ = 0;
  const StatusOr<Room> room = find_room_(path_);
  if (!room.ok()) return "";
  const uint64_t reserve = ReserveOf(*room);
  // Back with some more than it was left with, so that it does not come and go.
  const bool has_room = room->free >= (has_room_ ? reserve : reserve + reserve / 4);
  if (has_room == has_room_) return "";
  has_room_ = has_room;
  if (has_room) {
    return absl::StrCat("[weft] ", std::exchange(lost_, 0),
                        " bytes are missing here: the disk had too little room");
  }
  return absl::StrCat("[weft] The log stops here until its disk has more room: ", room->free >> 20,
                      " of ", room->whole >> 20, " MiB are free");
}

Status LogFile::Append(const std::vector<std::string>& lines, absl::Time now) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now, absl::UTCTimeZone());
  std::string text;
  for (const std::string& line : lines) {
    if (!absl::EndsWith(line, "\r")) absl::StrAppend(&text, time, " ", line, "\n");
  }
  const std::string news = LookForRoom(text.size());
  if (!has_room_) {
    lost_ += text.size();
    text.clear();
  }
  if (!news.empty()) text = absl::StrCat(time, " ", news, "\n", text);
  return text.empty() ? absl::OkStatus() : file_->Append(text);
}

}  // namespace weft::platform
