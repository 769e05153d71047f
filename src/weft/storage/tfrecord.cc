// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/tfrecord.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "weft/storage/coding.h"

namespace weft::storage {
namespace {

constexpr size_t kHeaderBytes = 12;   // length and its checksum
constexpr size_t kChecksumBytes = 4;  // checksum of the data
// A length with a good checksum may still be nonsense: memory grows only as bytes arrive.
constexpr uint64_t kReadStep = 4 << 20;

}  // namespace

StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(FileSystem& files,
                                                             const std::string& path,
                                                             Compression compression,
                                                             WriteMode mode) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.OpenWrite(path, mode));
  return std::make_unique<RecordWriter>(MakeSink(std::move(file), path, compression), path);
}

Status RecordWriter::Write(absl::string_view record) {
  std::string header;
  AppendFixed64(record.size(), &header);
  AppendFixed32(MaskCrc32c(Crc32c(header)), &header);
  std::string footer;
  AppendFixed32(MaskCrc32c(Crc32c(record)), &footer);
  WEFT_RETURN_IF_ERROR(sink_->Append(header));
  WEFT_RETURN_IF_ERROR(sink_->Append(record));
  return sink_->Append(footer);
}

StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(FileSystem& files,
                                                           const std::string& path,
                                                           Compression compression,
                                                           size_t buffer_bytes) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenRead(path));
  return std::make_unique<RecordReader>(
      MakeSource(std::move(file), path, compression, buffer_bytes), path);
}

StatusOr<bool> RecordReader::Next(std::string* record) {
  cut_short_ = false;
  record->clear();
  char header[kHeaderBytes];
  WEFT_ASSIGN_OR_RETURN(const size_t got, source_->Read(absl::MakeSpan(header)));
  if (got == 0) return false;
  if (got < kHeaderBytes) return CutShort();
  if (UnmaskCrc32c(LoadFixed32(header + 8)) != Crc32c({header, 8})) {
    return Damaged("bad checksum of the length");
  }
  const uint64_t size = LoadFixed64(header);
  if (size > static_cast<uint64_t>(INT64_MAX) - kRecordOverhead) {
    return Damaged("the length is absurd");
  }
  WEFT_ASSIGN_OR_RETURN(const bool whole, ReadBytes(size + kChecksumBytes, record));
  if (!whole) return CutShort();
  const uint32_t checksum = LoadFixed32(record->data() + size);
  record->resize(size);
  if (UnmaskCrc32c(checksum) != Crc32c(*record)) return Damaged("bad checksum of the data");
  offset_ += size + kRecordOverhead;
  return true;
}

Status RecordReader::Seek(uint64_t offset) {
  WEFT_RETURN_IF_ERROR(source_->Seek(offset));
  offset_ = offset;
  return absl::OkStatus();
}

StatusOr<bool> RecordReader::ReadBytes(uint64_t size, std::string* out) {
  while (out->size() < size) {
    const size_t done = out->size();
    const size_t step = static_cast<size_t>(std::min(size - done, std::max(kReadStep, done)));
    out->resize(done + step);
    WEFT_ASSIGN_OR_RETURN(const size_t got, source_->Read(absl::MakeSpan(&(*out)[done], step)));
    if (got < step) return false;
  }
  return true;
}

Status RecordReader::Damaged(absl::string_view what) const {
  return DataLoss("Corrupted record (", what, ") at offset ", offset_, " of file ", path_);
}

Status RecordReader::CutShort() {
  cut_short_ = true;
  return DataLoss("Truncated record at offset ", offset_, " of file ", path_);
}

}  // namespace weft::storage
