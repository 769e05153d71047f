// SPDX-License-Identifier: Apache-2.0
#include "base/faulty_files.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/posix_file.h"

namespace weft {
namespace {

class FaultyReadable : public ReadableFile {
 public:
  FaultyReadable(FaultyFileSystem* owner, std::unique_ptr<ReadableFile> file)
      : owner_(owner), file_(std::move(file)) {}
  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    WEFT_RETURN_IF_ERROR(owner_->Count());
    return file_->ReadAt(offset, buffer);
  }

 private:
  FaultyFileSystem* const owner_;
  const std::unique_ptr<ReadableFile> file_;
};

class FaultyWritable : public WritableFile {
 public:
  FaultyWritable(FaultyFileSystem* owner, std::unique_ptr<WritableFile> file, std::string path)
      : owner_(owner), file_(std::move(file)), path_(std::move(path)) {}

  Status Append(absl::string_view data) override {
    WEFT_RETURN_IF_ERROR(owner_->Count());
    const size_t fits = owner_->TakeBytes(data.size());
    WEFT_RETURN_IF_ERROR(file_->Append(data.substr(0, fits)));
    return fits == data.size() ? absl::OkStatus() : ErrnoStatus(ENOSPC, "write", path_);
  }
  Status Sync() override {
    WEFT_RETURN_IF_ERROR(owner_->Count());
    return file_->Sync();
  }
  Status Close() override {
    WEFT_RETURN_IF_ERROR(owner_->Count());
    return file_->Close();
  }

 private:
  FaultyFileSystem* const owner_;
  const std::unique_ptr<WritableFile> file_;
  const std::string path_;
};

}  // namespace

void FaultyFileSystem::FailCall(int64_t nth, Status error, bool sticky) {
  absl::MutexLock lock(&mutex_);
  failing_call_ = calls_ + nth;
  error_ = std::move(error);
  sticky_ = sticky;
}

void FaultyFileSystem::LimitBytes(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_left_ = bytes;
}

int64_t FaultyFileSystem::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

Status FaultyFileSystem::Count() {
  absl::MutexLock lock(&mutex_);
  ++calls_;
  if (failing_call_ < 0 || calls_ < failing_call_) return absl::OkStatus();
  if (calls_ > failing_call_ && !sticky_) return absl::OkStatus();
  return error_;
}

size_t FaultyFileSystem::TakeBytes(size_t size) {
  absl::MutexLock lock(&mutex_);
  const int64_t taken = std::min(bytes_left_, static_cast<int64_t>(size));
  bytes_left_ -= taken;
  return static_cast<size_t>(taken);
}

StatusOr<std::unique_ptr<ReadableFile>> FaultyFileSystem::OpenRead(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, base_->OpenRead(path));
  return std::make_unique<FaultyReadable>(this, std::move(file));
}

StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::OpenWrite(const std::string& path,
                                                                    WriteMode mode) {
  WEFT_RETURN_IF_ERROR(Count());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_->OpenWrite(path, mode));
  return std::make_unique<FaultyWritable>(this, std::move(file), path);
}

StatusOr<FileStat> FaultyFileSystem::Stat(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->Stat(path);
}

StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->List(path);
}

Status FaultyFileSystem::MakeDirectories(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->MakeDirectories(path);
}

Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->Rename(from, to);
}

Status FaultyFileSystem::Delete(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->Delete(path);
}

Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  WEFT_RETURN_IF_ERROR(Count());
  return base_->SyncDirectory(path);
}

}  // namespace weft
