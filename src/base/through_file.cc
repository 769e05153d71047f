// SPDX-License-Identifier: Apache-2.0
#include "base/through_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"

namespace weft {
namespace {

// Disks and file systems want memory, offset and length of such writes at multiples of their
// blocks.
constexpr size_t kAlignment = 4096;
constexpr size_t kPieceBytes = size_t{4} << 20;
constexpr size_t kPieces = 3;

struct FreeBytes {
  void operator()(char* bytes) const { std::free(bytes); }
};
using PieceBytes = std::unique_ptr<char, FreeBytes>;

class ThroughFile : public WritableFile {
 public:
  ThroughFile(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  ~ThroughFile() override { EndThread(); }

  Status Append(absl::string_view data) override {
    if (!fd_.is_open()) return FailedPrecondition("The file is closed: '", path_, "'");
    while (!data.empty()) {
      if (current_ == nullptr) WEFT_RETURN_IF_ERROR(TakePiece());
      const size_t count = std::min(data.size(), kPieceBytes - used_);
      std::memcpy(current_.get() + used_, data.data(), count);
      used_ += count;
      data.remove_prefix(count);
      if (used_ == kPieceBytes) HandOver();
    }
    return absl::OkStatus();
  }

  Status Sync() override {
    if (!fd_.is_open()) return FailedPrecondition("The file is closed: '", path_, "'");
    WEFT_RETURN_IF_ERROR(WriteRest());
    if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, "sync", path_);
    return absl::OkStatus();
  }

  Status Close() override {
    if (!fd_.is_open()) return absl::OkStatus();
    const Status written = WriteRest();
    EndThread();
    if (::close(fd_.Release()) != 0 && errno != EINTR && written.ok()) {
      return ErrnoStatus(errno, "close", path_);
    }
    return written;
  }

 private:
  struct Piece {
    PieceBytes bytes;
    uint64_t offset = 0;
  };

  // An empty piece, waiting until the disk has taken one if all are on their way.
  Status TakePiece() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](ThroughFile* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(file->mutex_) {
          return !file->free_.empty() || file->made_ < kPieces || !file->failure_.ok();
        },
        this));
    WEFT_RETURN_IF_ERROR(failure_);
    if (!free_.empty()) {
      current_ = std::move(free_.back());
      free_.pop_back();
      return absl::OkStatus();
    }
    current_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, kPieceBytes)));
    if (current_ == nullptr) {
      return ResourceExhausted("No memory to write '", path_, "': ", kPieceBytes, " bytes");
    }
    ++made_;
    return absl::OkStatus();
  }

  // The full piece to the thread, which starts with the first: small files need none.
  void HandOver() {
    {
      absl::MutexLock lock(&mutex_);
      queue_.push_back({std::move(current_), base_});
      ++under_way_;
    }
    base_ += kPieceBytes;
    used_ = 0;
    if (!thread_) thread_.emplace("weft-disk", [this] { WriteQueued(); });
  }

  void WriteQueued() {
    SetDirect(true);
    while (true) {
      Piece piece;
      bool failed = false;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(
            +[](ThroughFile* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(file->mutex_) {
              return !file->queue_.empty() || file->ending_;
            },
            this));
        if (queue_.empty()) return;
        piece = std::move(queue_.front());
        queue_.pop_front();
        failed = !failure_.ok();
      }
      // After a failure the pieces only come back.
      const Status written =
          failed ? absl::OkStatus() : WriteAt({piece.bytes.get(), kPieceBytes}, piece.offset);
      absl::MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = written;
      free_.push_back(std::move(piece.bytes));
      --under_way_;
    }
  }

  // Waits for the thread and writes what is not a whole piece, which a later call writes again.
  Status WriteRest() {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](ThroughFile* file)
               ABSL_EXCLUSIVE_LOCKS_REQUIRED(file->mutex_) { return file->under_way_ == 0; },
          this));
      WEFT_RETURN_IF_ERROR(failure_);
    }
    if (used_ == 0) return absl::OkStatus();
    const bool was_direct = direct_;
    SetDirect(false);
    const Status written = WriteAt({current_.get(), used_}, base_);
    if (was_direct) SetDirect(true);
    absl::MutexLock lock(&mutex_);
    failure_ = written;
    return written;
  }

  Status WriteAt(absl::string_view bytes, uint64_t offset) {
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno == EINVAL && direct_) {
          SetDirect(false);
          continue;
        }
        return ErrnoStatus(errno, "write", path_);
      }
      bytes.remove_prefix(static_cast<size_t>(count));
      offset += static_cast<uint64_t>(count);
    }
    return absl::OkStatus();
  }

  // Past the page cache or through it; the thread's while pieces are under way.
  void SetDirect(bool direct) {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0) return;
    const int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
    direct_ = ::fcntl(fd_.get(), F_SETFL, wanted) == 0 && direct;
  }

  // What is still queued is given up; Close has waited for all of it.
  void EndThread() {
    if (!thread_) return;
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
      queue_.clear();
    }
    thread_.reset();
  }

  OwnedFd fd_;
  const std::string path_;
  PieceBytes current_;   // null if a piece must be taken first
  size_t used_ = 0;      // bytes of it
  uint64_t base_ = 0;    // its place in the file
  bool direct_ = false;  // of the thread while pieces are under way
  absl::Mutex mutex_;
  std::deque<Piece> queue_ ABSL_GUARDED_BY(mutex_);
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // queued or being written
  std::vector<PieceBytes> free_ ABSL_GUARDED_BY(mutex_);
  size_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::optional<Thread> thread_;
};

}  // namespace

std::unique_ptr<WritableFile> AdoptThroughFile(OwnedFd fd, const std::string& path) {
  return std::make_unique<ThroughFile>(std::move(fd), path);
}

}  // namespace weft
