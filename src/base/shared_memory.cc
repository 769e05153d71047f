// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/huge_pages.h"

namespace weft {
namespace {

constexpr uint64_t kFirstSegment = uint64_t{64} << 20;
constexpr uint64_t kGranule = uint64_t{2} << 20;
constexpr uint64_t kMostAtOnce = uint64_t{16} << 20;
constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Create(const char* name, uint64_t bytes) {
  OwnedFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return ErrnoStatus(errno, "make shared memory", name);
  struct stat stat = {};
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0 || fstat(fd.get(), &stat) != 0) {
    return ErrnoStatus(errno, "size shared memory", name);
  }
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "map shared memory", name);
  // A child that is forked would otherwise write into its parent's tensors.
  madvise(data, bytes, MADV_DONTFORK);
  AskForHugePages(data, bytes);
  const SharedFile file{fd.get(), stat.st_ino, bytes};
  return std::unique_ptr<SharedMapping>(
      new SharedMapping(std::move(fd), file, static_cast<std::byte*>(data)));
}

StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Open(pid_t pid, const SharedFile& file,
                                                             bool writable) {
  const std::string path = absl::StrCat("/proc/", pid, "/fd/", file.fd);
  const OwnedFd fd(open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return Unavailable(ErrnoStatus(errno, "open", path).message());
  struct stat stat = {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &stat) != 0 || stat.st_ino != file.inode || seals < 0 ||
      (seals & kSeals) != kSeals || static_cast<uint64_t>(stat.st_size) != file.bytes) {
    return InvalidArgument("Not the shared memory that was offered: ", path);
  }
  void* const data =
      mmap(nullptr, file.bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return Unavailable(ErrnoStatus(errno, "map", path).message());
  madvise(data, file.bytes, MADV_DONTFORK);
  AskForHugePages(data, file.bytes);
  return std::unique_ptr<SharedMapping>(
      new SharedMapping(OwnedFd(), file, static_cast<std::byte*>(data)));
}

StatusOr<std::unique_ptr<SharedMapping>> SharedMapping::Adopt(OwnedFd fd) {
  struct stat stat = {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &stat) != 0 || seals < 0 || (seals & kSeals) != kSeals || stat.st_size == 0)
    return InvalidArgument("Not shared memory of a size that stays: descriptor ", fd.get());
  const auto bytes = static_cast<uint64_t>(stat.st_size);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "map", "inherited memory");
  madvise(data, bytes, MADV_DONTFORK);
  AskForHugePages(data, bytes);
  const SharedFile file{fd.get(), stat.st_ino, bytes};
  return std::unique_ptr<SharedMapping>(
      new SharedMapping(std::move(fd), file, static_cast<std::byte*>(data)));
}

SharedMapping::~SharedMapping() { munmap(data_, file_.bytes); }

Status SharedMemory::Enable() {
  if (enabled()) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(SharedMapping::Create("weft-probe", kPage).status());
  enabled_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

StatusOr<std::vector<std::pair<std::byte*, size_t>>> SharedMemory::EnableIn(
    std::unique_ptr<SharedMapping> file, std::vector<std::pair<uint64_t, uint64_t>> taken) {
  if (enabled()) return FailedPrecondition("Shared memory is in use already");
  // The end of what anybody wrote.
  uint64_t written = 0;
  for (off_t at = 0; (at = lseek(file->file().fd, at, SEEK_DATA)) >= 0;) {
    at = lseek(file->file().fd, at, SEEK_HOLE);
    if (at < 0) break;
    written = static_cast<uint64_t>(at);
  }
  std::sort(taken.begin(), taken.end());
  std::vector<std::pair<std::byte*, size_t>> rooms;
  uint64_t end = 0;
  const auto add_room = [&](uint64_t until) {
    if (until > end) rooms.emplace_back(file->data() + end, until - end);
  };
  for (const auto& [offset, bytes] : taken) {
    if (offset > file->size() || bytes > file->size() - offset)
      return InvalidArgument("What is taken lies outside the file: ", bytes, " bytes at ", offset);
    add_room(offset / kPage * kPage);
    end = std::max(end, RoundUp(offset + bytes, kPage));
  }
  add_room(std::min(written, file->size()));
  absl::MutexLock lock(&mutex_);
  used_ = std::max(end, RoundUp(written, kPage));
  total_ = file->size();
  segments_[0] = std::move(file);
  num_segments_.store(1, std::memory_order_release);
  enabled_.store(true, std::memory_order_release);
  return rooms;
}

std::byte* SharedMemory::Allocate(size_t bytes) {
  if (!enabled()) return nullptr;
  // A large block has its pages to itself.
  const uint64_t size = RoundUp(std::max<size_t>(bytes, 1), bytes >= kPage ? kPage : kAlignment);
  std::byte* block = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes >= kPage) block = TakeFree(size);
    if (block == nullptr) {
      size_t count = num_segments_.load(std::memory_order_relaxed);
      uint64_t begin = bytes >= kPage ? RoundUp(used_, kPage) : used_;
      if (count == 0 || begin + size > segments_[count - 1]->size()) {
        if (count == kMaxSegments) return nullptr;
        // They grow with what there is, so that few descriptors are enough.
        const uint64_t wanted = RoundUp(std::max({kFirstSegment, size, total_ / 4}), kGranule);
        StatusOr<std::unique_ptr<SharedMapping>> segment = SharedMapping::Create("weft", wanted);
        if (!segment.ok()) return nullptr;
        if (count > 0) {
          const SharedMapping& last = *segments_[count - 1];
          const uint64_t rest = RoundUp(used_, kPage);
          if (rest < last.size()) AddFree(last.data() + rest, last.size() - rest);
        }
        segments_[count++] = *std::move(segment);
        num_segments_.store(count, std::memory_order_release);
        total_ += wanted;
        begin = 0;
      }
      block = segments_[count - 1]->data() + begin;
      used_ = begin + size;
    }
  }
  // One call for all pages is at most as dear as a fault for each; failing costs nothing. Several
  // threads write to large ones, and share this then.
  if (bytes >= kGranule && bytes < kMostAtOnce) madvise(block, bytes, MADV_POPULATE_WRITE);
  return block;
}

void SharedMemory::Free(std::byte* block, size_t bytes) {
  if (bytes < kPage) return;
  const uint64_t size = RoundUp(bytes, kPage);
  // Out of the file too, so that no mapping of another process holds the pages.
  madvise(block, size, MADV_REMOVE);
  absl::MutexLock lock(&mutex_);
  AddFree(block, size);
}

std::byte* SharedMemory::TakeFree(uint64_t size) {
  const auto found = free_by_size_.lower_bound({size, nullptr});
  if (found == free_by_size_.end()) return nullptr;
  const auto [all, begin] = *found;
  EraseFree(begin, all);
  if (all > size) AddFree(begin + size, all - size);
  return begin;
}

void SharedMemory::AddFree(std::byte* begin, uint64_t size) {
  const SharedMapping* const segment = SegmentOf(begin);
  const auto next = free_by_place_.find(begin + size);
  if (next != free_by_place_.end() && SegmentOf(next->first) == segment) {
    const auto [place, more] = *next;
    EraseFree(place, more);
    size += more;
  }
  const auto after = free_by_place_.lower_bound(begin);
  if (after != free_by_place_.begin()) {
    const auto [place, before] = *std::prev(after);
    if (place + before == begin && SegmentOf(place) == segment) {
      EraseFree(place, before);
      begin = place;
      size += before;
    }
  }
  free_by_place_.emplace(begin, size);
  free_by_size_.emplace(size, begin);
}

void SharedMemory::EraseFree(std::byte* begin, uint64_t size) {
  free_by_place_.erase(begin);
  free_by_size_.erase({size, begin});
}

const SharedMapping* SharedMemory::SegmentOf(const std::byte* data) const {
  const size_t count = num_segments_.load(std::memory_order_acquire);
  for (size_t k = count; k-- > 0;) {
    const SharedMapping& segment = *segments_[k];
    if (data >= segment.data() && data < segment.data() + segment.size()) return &segment;
  }
  return nullptr;
}

std::optional<SharedMemory::Place> SharedMemory::Find(const std::byte* data, size_t bytes) const {
  const SharedMapping* const segment = SegmentOf(data);
  if (segment == nullptr) return std::nullopt;
  const auto offset = static_cast<uint64_t>(data - segment->data());
  if (bytes > segment->size() - offset) return std::nullopt;
  return Place{segment->file(), offset};
}

SharedMemory& ProcessSharedMemory() {
  // Never destroyed: tensors in static storage may outlive main().
  static SharedMemory* const memory = new SharedMemory();
  return *memory;
}

}  // namespace weft
