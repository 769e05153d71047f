// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/storage/zlib_stream.h"

namespace weft::storage {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(std::unique_ptr<ReadableFile> file, size_t buffer_bytes)
      : file_(std::move(file)), buffer_(std::max<size_t>(buffer_bytes, 1), '\0') {}

  StatusOr<size_t> Read(absl::Span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      if (begin_ == end_) {
        // Large reads go straight to the caller's memory.
        const bool direct = out.size() - done >= buffer_.size();
        const absl::Span<char> target =
            direct ? out.subspan(done) : absl::MakeSpan(buffer_.data(), buffer_.size());
        WEFT_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(file_offset_, target));
        if (got == 0) break;
        file_offset_ += got;
        begin_ = 0;
        end_ = direct ? 0 : got;
        if (direct) {
          done += got;
          continue;
        }
      }
      const size_t take = std::min(out.size() - done, end_ - begin_);
      std::memcpy(out.data() + done, buffer_.data() + begin_, take);
      begin_ += take;
      done += take;
    }
    return done;
  }

  Status Seek(uint64_t offset) override {
    const uint64_t buffer_start = file_offset_ - end_;
    if (offset >= buffer_start && offset <= file_offset_) {
      begin_ = static_cast<size_t>(offset - buffer_start);
    } else {
      begin_ = end_ = 0;
      file_offset_ = offset;
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  std::string buffer_;
  size_t begin_ = 0;  // buffer_[begin_, end_) is not yet consumed and ends at file_offset_
  size_t end_ = 0;
  uint64_t file_offset_ = 0;
};

class FileSink : public ByteSink {
 public:
  FileSink(std::unique_ptr<WritableFile> file, size_t buffer_bytes)
      : file_(std::move(file)), limit_(buffer_bytes) {}

  Status Append(absl::string_view data) override {
    WEFT_RETURN_IF_ERROR(error_);
    if (buffer_.size() + data.size() <= limit_) {
      buffer_.append(data.data(), data.size());
      return absl::OkStatus();
    }
    WEFT_RETURN_IF_ERROR(Flush());
    if (data.size() < limit_) {
      buffer_.append(data.data(), data.size());
      return absl::OkStatus();
    }
    return Keep(file_->Append(data));
  }
  Status Flush() override {
    WEFT_RETURN_IF_ERROR(error_);
    if (buffer_.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(Keep(file_->Append(buffer_)));
    buffer_.clear();
    return absl::OkStatus();
  }
  Status Sync() override {
    WEFT_RETURN_IF_ERROR(Flush());
    return Keep(file_->Sync());
  }
  Status Close() override {
    const Status flushed = Flush();
    const Status closed = file_->Close();
    return flushed.ok() ? closed : flushed;
  }

 private:
  // After a failed write the file's end is unknown: nothing more may be appended.
  Status Keep(Status status) {
    if (!status.ok()) error_ = status;
    return status;
  }

  const std::unique_ptr<WritableFile> file_;
  const size_t limit_;
  std::string buffer_;
  Status error_;
};

}  // namespace

StatusOr<Compression> CompressionFromName(absl::string_view name) {
  if (name.empty() || name == "NONE") return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return InvalidArgument("Unknown compression type, expected \"\", ZLIB or GZIP: ", name);
}

std::unique_ptr<ByteSource> MakeSource(std::unique_ptr<ReadableFile> file, std::string path,
                                       Compression compression, size_t buffer_bytes) {
  auto plain = std::make_unique<FileSource>(std::move(file), buffer_bytes);
  if (compression == Compression::kNone) return plain;
  return MakeZlibSource(std::move(plain), std::move(path), compression, buffer_bytes);
}

std::unique_ptr<ByteSink> MakeSink(std::unique_ptr<WritableFile> file, std::string path,
                                   Compression compression, size_t buffer_bytes) {
  auto plain = std::make_unique<FileSink>(std::move(file), buffer_bytes);
  if (compression == Compression::kNone) return plain;
  return MakeZlibSink(std::move(plain), std::move(path), compression, buffer_bytes);
}

}  // namespace weft::storage
