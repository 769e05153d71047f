// SPDX-License-Identifier: Apache-2.0
#include "base/memory_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace weft {

// Readers and names share it.
struct MemoryFileSystem::File {
  absl::Mutex mutex;
  std::string bytes ABSL_GUARDED_BY(mutex);
  std::string durable_bytes ABSL_GUARDED_BY(mutex);
  absl::Time modified ABSL_GUARDED_BY(mutex) = absl::Now();
};

namespace {

using File = MemoryFileSystem::File;

// Without empty and "." parts: "a//b/./c" -> "a/b/c", "." -> "".
std::string Clean(absl::string_view path) {
  std::string clean;
  for (absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part == ".") continue;
    absl::StrAppend(&clean, clean.empty() ? "" : "/", part);
  }
  return clean;
}

std::string CleanParent(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

class MemoryReadable : public ReadableFile {
 public:
  explicit MemoryReadable(std::shared_ptr<File> file) : file_(std::move(file)) {}
  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    absl::MutexLock lock(&file_->mutex);
    if (offset >= file_->bytes.size()) return 0;
    const size_t size = std::min(buffer.size(), file_->bytes.size() - static_cast<size_t>(offset));
    std::memcpy(buffer.data(), file_->bytes.data() + offset, size);
    return size;
  }

 private:
  const std::shared_ptr<File> file_;  // shared: a deleted file stays readable
};

class MemoryWritable : public WritableFile {
 public:
  MemoryWritable(std::shared_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status Append(absl::string_view data) override {
    if (closed_) return FailedPrecondition("File is closed: ", path_);
    absl::MutexLock lock(&file_->mutex);
    file_->bytes.append(data.data(), data.size());
    file_->modified = absl::Now();
    return absl::OkStatus();
  }
  Status Sync() override {
    if (closed_) return FailedPrecondition("File is closed: ", path_);
    absl::MutexLock lock(&file_->mutex);
    file_->durable_bytes = file_->bytes;
    return absl::OkStatus();
  }
  Status Close() override {
    closed_ = true;
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<File> file_;
  const std::string path_;
  bool closed_ = false;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() {
  names_[""] = nullptr;
  durable_names_[""] = nullptr;
}

MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::LosePower() {
  absl::MutexLock lock(&mutex_);
  names_ = durable_names_;
  for (const auto& [path, file] : names_) {
    if (!file) continue;
    absl::MutexLock file_lock(&file->mutex);
    file->bytes = file->durable_bytes;
  }
}

StatusOr<std::shared_ptr<File>> MemoryFileSystem::Find(const std::string& path) {
  const auto found = names_.find(Clean(path));
  if (found == names_.end()) return NotFound("No such file: ", path);
  return found->second;
}

StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenRead(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<File> file, Find(path));
  if (!file) return FailedPrecondition("Is a directory: ", path);
  return std::make_unique<MemoryReadable>(std::move(file));
}

StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::OpenWrite(const std::string& path,
                                                                    WriteMode mode) {
  absl::MutexLock lock(&mutex_);
  const std::string name = Clean(path);
  const auto parent = names_.find(CleanParent(name));
  if (parent == names_.end() || parent->second) return NotFound("No such directory for ", path);
  const auto [found, is_new] = names_.try_emplace(name);
  if (is_new) {
    found->second = std::make_shared<File>();
  } else if (!found->second) {
    return FailedPrecondition("Is a directory: ", path);
  }
  if (mode == WriteMode::kTruncate) {
    absl::MutexLock file_lock(&found->second->mutex);
    found->second->bytes.clear();
  }
  return std::make_unique<MemoryWritable>(found->second, path);
}

StatusOr<FileStat> MemoryFileSystem::Stat(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, Find(path));
  FileStat stat;
  stat.is_directory = file == nullptr;
  if (!file) return stat;
  absl::MutexLock file_lock(&file->mutex);
  stat.size_bytes = file->bytes.size();
  stat.modified = file->modified;
  return stat;
}

StatusOr<std::vector<std::string>> MemoryFileSystem::List(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, Find(path));
  if (file) return FailedPrecondition("Not a directory: ", path);
  const std::string folder = Clean(path);
  std::vector<std::string> children;
  for (const auto& [name, unused] : names_) {
    if (name.empty() || CleanParent(name) != folder) continue;
    children.push_back(name.substr(folder.empty() ? 0 : folder.size() + 1));
  }
  std::sort(children.begin(), children.end());
  return children;
}

Status MemoryFileSystem::MakeDirectories(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  const std::string name = Clean(path);
  for (size_t end = 0; end != std::string::npos && !name.empty();) {
    end = name.find('/', end == 0 ? 0 : end + 1);
    const auto [found, is_new] = names_.try_emplace(name.substr(0, end));
    if (found->second) return FailedPrecondition("Not a directory: ", found->first);
    // Folders outlive a power cut here: what is tested is files.
    durable_names_.try_emplace(name.substr(0, end));
  }
  return absl::OkStatus();
}

Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<File> file, Find(from));
  if (!file) return Unimplemented("Directories in memory cannot be renamed: ", from);
  const auto parent = names_.find(CleanParent(Clean(to)));
  if (parent == names_.end() || parent->second) return NotFound("No such directory for ", to);
  names_.erase(Clean(from));
  names_[Clean(to)] = std::move(file);
  return absl::OkStatus();
}

Status MemoryFileSystem::Delete(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, Find(path));
  const std::string name = Clean(path);
  if (!file) {
    const auto child = names_.upper_bound(name + "/");
    if (name.empty() || (child != names_.end() && absl::StartsWith(child->first, name + "/"))) {
      return FailedPrecondition("Directory is not empty: ", path);
    }
    durable_names_.erase(name);
  }
  names_.erase(name);
  return absl::OkStatus();
}

Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(Find(path).status());
  const std::string folder = Clean(path);
  const auto is_child = [&](const auto& entry) {
    return !entry.first.empty() && CleanParent(entry.first) == folder && entry.second;
  };
  std::erase_if(durable_names_, is_child);
  for (const auto& entry : names_) {
    if (is_child(entry)) durable_names_.insert(entry);
  }
  return absl::OkStatus();
}

}  // namespace weft
