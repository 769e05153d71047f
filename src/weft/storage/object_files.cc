// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/object_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft::storage {
namespace {

constexpr size_t kReadAhead = size_t{1} << 20;

// Small reads, which parsers of files make, come from one request.
class ObjectReader final : public ReadableFile {
 public:
  ObjectReader(ObjectStore* store, ObjectName name, uint64_t size)
      : store_(store), name_(std::move(name)), size_(size) {}

  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    if (offset >= size_ || buffer.empty()) return 0;
    buffer = buffer.first(std::min<uint64_t>(buffer.size(), size_ - offset));
    if (buffer.size() >= kReadAhead) return store_->Read(name_, offset, buffer);
    absl::MutexLock lock(&mutex_);
    if (offset < begin_ || offset + buffer.size() > begin_ + ahead_.size()) {
      std::string ahead(std::min<uint64_t>(kReadAhead, size_ - offset), '\0');
      WEFT_ASSIGN_OR_RETURN(const size_t count, store_->Read(name_, offset, absl::MakeSpan(ahead)));
      ahead.resize(count);
      ahead_ = std::move(ahead);
      begin_ = offset;
    }
    const size_t count = std::min(buffer.size(), ahead_.size() - (offset - begin_));
    std::memcpy(buffer.data(), ahead_.data() + (offset - begin_), count);
    return count;
  }

 private:
  ObjectStore* const store_;
  const ObjectName name_;
  const uint64_t size_;
  mutable absl::Mutex mutex_;
  mutable std::string ahead_ ABSL_GUARDED_BY(mutex_);
  mutable uint64_t begin_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ObjectWriter final : public WritableFile {
 public:
  ObjectWriter(std::unique_ptr<ObjectUpload> upload, std::string begin)
      : upload_(std::move(upload)), buffer_(std::move(begin)) {}
  ~ObjectWriter() override {
    if (!closed_) upload_->Abandon();
  }

  Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const size_t count = std::min(data.size(), kPartBytes - std::min(kPartBytes, buffer_.size()));
      buffer_.append(data.data(), count);
      data.remove_prefix(count);
      if (buffer_.size() < kPartBytes) continue;
      const std::string part = std::exchange(buffer_, "");
      for (size_t at = 0; at < part.size(); at += kPartBytes) {
        if (part.size() - at < kPartBytes) {
          buffer_ = part.substr(at);
          break;
        }
        WEFT_RETURN_IF_ERROR(upload_->Part(part.substr(at, kPartBytes)));
      }
    }
    return absl::OkStatus();
  }
  // A store shows an object when it is whole.
  Status Sync() override { return absl::OkStatus(); }
  Status Close() override {
    if (std::exchange(closed_, true)) return absl::OkStatus();
    const Status finished = upload_->Finish(buffer_);
    if (!finished.ok()) upload_->Abandon();
    return finished;
  }

 private:
  const std::unique_ptr<ObjectUpload> upload_;
  std::string buffer_;
  bool closed_ = false;
};

// The name of a folder: with one slash at its end, or empty for a whole bucket.
ObjectName FolderOf(ObjectName name) {
  name.key = std::string(absl::StripSuffix(name.key, "/"));
  if (!name.key.empty()) name.key += '/';
  return name;
}

}  // namespace

StatusOr<ObjectFileSystem::Place> ObjectFileSystem::Find(const std::string& path) {
  const size_t end = path.find("://");
  if (end == std::string::npos) return Place();
  const std::string scheme = path.substr(0, end);
  const bool is_web = scheme == "http" || scheme == "https";
  if (scheme == "file" || (scheme != "s3" && scheme != "gs" && !is_web)) return Place();
  Place place;
  const size_t bucket = end + 3;
  const size_t slash = path.find('/', bucket);
  place.name.url = path;
  place.name.bucket = path.substr(bucket, slash == std::string::npos ? slash : slash - bucket);
  if (slash != std::string::npos) place.name.key = path.substr(slash + 1);
  if (place.name.bucket.empty()) {
    return InvalidArgument("There is no ", is_web ? "host" : "bucket", " in '", path, "'");
  }
  const std::string which = is_web ? absl::StrCat(scheme, "://", place.name.bucket) : scheme;
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<ObjectStore>& store = stores_[which];
  if (store == nullptr) {
    WEFT_ASSIGN_OR_RETURN(store, is_web ? OpenHttp(which) : scheme == "s3" ? OpenS3() : OpenGcs());
  }
  place.store = store.get();
  return place;
}

StatusOr<std::unique_ptr<ReadableFile>> ObjectFileSystem::OpenRead(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(Place place, Find(path));
  if (place.store == nullptr) return local_->OpenRead(path);
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, place.store->Stat(place.name));
  return std::make_unique<ObjectReader>(place.store, std::move(place.name), stat.size_bytes);
}

StatusOr<std::unique_ptr<WritableFile>> ObjectFileSystem::OpenWrite(const std::string& path,
                                                                    WriteMode mode) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.store == nullptr) return local_->OpenWrite(path, mode);
  std::string begin;
  if (mode == WriteMode::kAppend) {
    // Objects do not grow: it is written anew, with what it had in front.
    StatusOr<std::string> old = ReadFile(*this, path);
    if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
    if (old.ok()) begin = *std::move(old);
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectUpload> upload, place.store->Upload(place.name));
  return std::make_unique<ObjectWriter>(std::move(upload), std::move(begin));
}

StatusOr<FileStat> ObjectFileSystem::Stat(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.store == nullptr) return local_->Stat(path);
  if (!place.name.key.empty() && !absl::EndsWith(place.name.key, "/")) {
    StatusOr<FileStat> object = place.store->Stat(place.name);
    if (object.ok() || !absl::IsNotFound(object.status())) return object;
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> inside,
                        place.store->List(FolderOf(place.name), 1));
  if (inside.empty() && !place.name.key.empty())
    return NotFound("Cannot stat '", path, "': there is no such object or folder");
  FileStat folder;
  folder.is_directory = true;
  folder.modified = absl::UnixEpoch();
  return folder;
}

StatusOr<std::vector<std::string>> ObjectFileSystem::List(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.store == nullptr) return local_->List(path);
  WEFT_ASSIGN_OR_RETURN(std::vector<std::string> names, place.store->List(FolderOf(place.name), 0));
  if (names.empty() && !place.name.key.empty())
    return NotFound("Cannot list '", path, "': there is no such folder");
  for (std::string& name : names) name = std::string(absl::StripSuffix(name, "/"));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Status ObjectFileSystem::MakeDirectories(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  return place.store == nullptr ? local_->MakeDirectories(path) : absl::OkStatus();
}

Status ObjectFileSystem::Rename(const std::string& from, const std::string& to) {
  WEFT_ASSIGN_OR_RETURN(const Place source, Find(from));
  WEFT_ASSIGN_OR_RETURN(const Place target, Find(to));
  if (source.store == nullptr && target.store == nullptr) return local_->Rename(from, to);
  if (source.store != target.store)
    return InvalidArgument("Cannot rename '", from, "' to '", to, "', which is elsewhere");
  WEFT_RETURN_IF_ERROR(source.store->Copy(source.name, target.name));
  return source.store->Delete(source.name);
}

Status ObjectFileSystem::Delete(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.store == nullptr) return local_->Delete(path);
  // Stores answer alike whether there was one.
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, Stat(path));
  if (stat.is_directory)
    return FailedPrecondition("Cannot delete '", path, "': there are objects in it");
  return place.store->Delete(place.name);
}

Status ObjectFileSystem::SyncDirectory(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Find(path));
  return place.store == nullptr ? local_->SyncDirectory(path) : absl::OkStatus();
}

}  // namespace weft::storage
