// SPDX-License-Identifier: Apache-2.0
// What readers read: lines, records, whole files.
#include <algorithm>
#include <array>
#include <utility>

#include "weft/ops/state/reader_kernel.h"
#include "weft/storage/byte_stream.h"
#include "weft/storage/tfrecord.h"

namespace weft::ops::state {
namespace {

StatusOr<std::unique_ptr<storage::ByteSource>> OpenBytes(FileSystem* files, const std::string& path,
                                                         storage::Compression compression) {
  if (files == nullptr) return FailedPrecondition("This session has no file system");
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files->OpenRead(path));
  return storage::MakeSource(std::move(file), path, compression);
}

class LineSource final : public RecordSource {
 public:
  LineSource(std::unique_ptr<storage::ByteSource> bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)) {}

  // Skips lines; a file that has fewer is at its end.
  Status Skip(int64_t lines) {
    Record skipped;
    bool at_end = false;
    while (line_ < lines && !at_end) {
      WEFT_RETURN_IF_ERROR(Next(&skipped, &at_end).status());
    }
    return absl::OkStatus();
  }

  StatusOr<bool> Next(Record* record, bool* at_end) override {
    record->value.clear();
    bool any = false;
    while (true) {
      if (at_ == size_) {
        at_ = 0;
        WEFT_ASSIGN_OR_RETURN(size_, bytes_->Read(absl::MakeSpan(buffer_)));
        if (size_ == 0) break;
      }
      any = true;
      const char* const begin = buffer_.data() + at_;
      const char* const end = buffer_.data() + size_;
      const char* const line_end = std::find(begin, end, '\n');
      record->value.append(begin, line_end);
      at_ = static_cast<size_t>(std::min(line_end + 1, end) - buffer_.data());
      if (line_end != end) break;
    }
    *at_end = !any;
    if (!any) return false;
    std::erase(record->value, '\r');
    record->key = absl::StrCat(path_, ":", ++line_);
    return true;
  }

 private:
  const std::unique_ptr<storage::ByteSource> bytes_;
  const std::string path_;
  int64_t line_ = 0;
  std::array<char, 16384> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
};

// One record, known from the beginning.
class SingleSource final : public RecordSource {
 public:
  explicit SingleSource(Record record) : record_(std::move(record)) {}
  StatusOr<bool> Next(Record* record, bool* at_end) override {
    *record = std::move(record_);
    *at_end = true;
    return true;
  }

 private:
  Record record_;
};

class TfRecordSource final : public RecordSource {
 public:
  TfRecordSource(std::unique_ptr<storage::RecordReader> reader, std::string path)
      : reader_(std::move(reader)), path_(std::move(path)) {}
  StatusOr<bool> Next(Record* record, bool* at_end) override {
    record->key = absl::StrCat(path_, ":", reader_->offset());
    WEFT_ASSIGN_OR_RETURN(const bool found, reader_->Next(&record->value));
    *at_end = !found;
    return found;
  }

 private:
  const std::unique_ptr<storage::RecordReader> reader_;
  const std::string path_;
};

class FixedLengthSource final : public RecordSource {
 public:
  FixedLengthSource(const FixedLength& layout, std::string bytes, std::string path)
      : layout_(layout), bytes_(std::move(bytes)), path_(std::move(path)) {
    at_ = layout_.header_bytes;
  }
  StatusOr<bool> Next(Record* record, bool* at_end) override {
    const auto size = static_cast<int64_t>(bytes_.size()) - layout_.footer_bytes;
    *at_end = at_ > size || size - at_ < layout_.record_bytes;
    if (*at_end) return false;
    record->key = absl::StrCat(path_, ":", number_++);
    record->value =
        bytes_.substr(static_cast<size_t>(at_), static_cast<size_t>(layout_.record_bytes));
    const int64_t hop = layout_.hop_bytes > 0 ? layout_.hop_bytes : layout_.record_bytes;
    at_ = hop > size - at_ ? size + 1 : at_ + hop;
    return true;
  }

 private:
  const FixedLength layout_;
  const std::string bytes_;
  const std::string path_;
  int64_t at_ = 0;
  int64_t number_ = 0;
};

StatusOr<std::string> ReadAll(storage::ByteSource& source) {
  std::string all;
  std::string part(256 << 10, '\0');
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const size_t size, source.Read(absl::MakeSpan(part)));
    if (size == 0) return all;
    all.append(part, 0, size);
  }
}

}  // namespace

OpenSource TextLines(int64_t skipped_lines) {
  return [skipped_lines](FileSystem* files,
                         const std::string& path) -> StatusOr<std::unique_ptr<RecordSource>> {
    WEFT_ASSIGN_OR_RETURN(auto bytes, OpenBytes(files, path, storage::Compression::kNone));
    auto lines = std::make_unique<LineSource>(std::move(bytes), path);
    WEFT_RETURN_IF_ERROR(lines->Skip(skipped_lines));
    return lines;
  };
}

OpenSource WholeFiles() {
  return [](FileSystem* files, const std::string& path) -> StatusOr<std::unique_ptr<RecordSource>> {
    if (files == nullptr) return FailedPrecondition("This session has no file system");
    WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(*files, path));
    return std::make_unique<SingleSource>(Record{path, std::move(bytes)});
  };
}

OpenSource Identities() {
  return [](FileSystem*, const std::string& work) -> StatusOr<std::unique_ptr<RecordSource>> {
    return std::make_unique<SingleSource>(Record{work, work});
  };
}

StatusOr<OpenSource> TfRecords(const std::string& compression) {
  WEFT_ASSIGN_OR_RETURN(const storage::Compression kind, storage::CompressionFromName(compression));
  return [kind](FileSystem* files,
                const std::string& path) -> StatusOr<std::unique_ptr<RecordSource>> {
    if (files == nullptr) return FailedPrecondition("This session has no file system");
    WEFT_ASSIGN_OR_RETURN(auto reader, storage::RecordReader::Open(*files, path, kind));
    return std::make_unique<TfRecordSource>(std::move(reader), path);
  };
}

StatusOr<OpenSource> FixedLengthRecords(const FixedLength& layout) {
  WEFT_ASSIGN_OR_RETURN(const storage::Compression kind,
                        storage::CompressionFromName(layout.compression));
  if (layout.record_bytes <= 0 || layout.header_bytes < 0 || layout.footer_bytes < 0 ||
      layout.hop_bytes < 0) {
    return InvalidArgument(
        "record_bytes must be positive, header_bytes, footer_bytes and hop_bytes "
        "at least 0; got ",
        layout.record_bytes, ", ", layout.header_bytes, ", ", layout.footer_bytes, ", ",
        layout.hop_bytes);
  }
  return [layout, kind](FileSystem* files,
                        const std::string& path) -> StatusOr<std::unique_ptr<RecordSource>> {
    WEFT_ASSIGN_OR_RETURN(const auto source, OpenBytes(files, path, kind));
    WEFT_ASSIGN_OR_RETURN(std::string bytes, ReadAll(*source));
    return std::make_unique<FixedLengthSource>(layout, std::move(bytes), path);
  };
}

}  // namespace weft::ops::state
