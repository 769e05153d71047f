// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/table.h"

#include <utility>

#include <snappy.h>

#include "base/crc32c.h"
#include "weft/storage/coding.h"

namespace weft::storage {
namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr size_t kFooterBytes = 48;
constexpr size_t kHandlesBytes = 40;
constexpr size_t kTrailerBytes = 5;  // type and checksum after each block
constexpr char kTypePlain = 0;
constexpr char kTypeSnappy = 1;
// Snappy cannot do better than 64 bytes out of 3; more is a lie about the size.
constexpr size_t kMostSnappyRatio = 32;

void AppendHandle(BlockHandle handle, std::string* out) {
  AppendVarint(handle.offset, out);
  AppendVarint(handle.size, out);
}

// A short key from `last` up to, but not, `next`.
std::string Separator(const std::string& last, absl::string_view next) {
  size_t same = 0;
  while (same < last.size() && same < next.size() && last[same] == next[same]) ++same;
  if (same == last.size() || same == next.size()) return last;
  const auto byte = static_cast<uint8_t>(last[same]);
  if (byte == 0xff || byte + 1 >= static_cast<uint8_t>(next[same])) return last;
  return last.substr(0, same) + static_cast<char>(byte + 1);
}

// A short key that is not less than `last`.
std::string Successor(const std::string& last) {
  const size_t same = last.find_first_not_of('\xff');
  if (same == std::string::npos) return last;
  return last.substr(0, same) + static_cast<char>(last[same] + 1);
}

bool TakeHandle(absl::string_view* input, BlockHandle* handle) {
  return TakeVarint64(input, &handle->offset) && TakeVarint64(input, &handle->size);
}

}  // namespace

Status TableWriter::Add(absl::string_view key, absl::string_view value) {
  if (any_ && key <= last_key_) {
    return InvalidArgument("Table keys must rise: \"", key, "\" comes after \"", last_key_, "\"");
  }
  if (pending_) AddPending(Separator(last_key_, key));
  data_.Add(key, value);
  last_key_.assign(key.data(), key.size());
  any_ = true;
  return data_.size_bytes() >= block_bytes_ ? EndDataBlock() : absl::OkStatus();
}

void TableWriter::AddPending(const std::string& index_key) {
  std::string encoded;
  AppendHandle(*pending_, &encoded);
  index_.Add(index_key, encoded);
  pending_.reset();
}

Status TableWriter::EndDataBlock() {
  if (data_.empty()) return absl::OkStatus();
  BlockHandle handle;
  WEFT_RETURN_IF_ERROR(WriteBlock(data_.Finish(), &handle));
  pending_ = handle;
  return absl::OkStatus();
}

Status TableWriter::WriteBlock(const std::string& block, BlockHandle* handle) {
  *handle = {.offset = offset_, .size = block.size()};
  std::string trailer(1, kTypePlain);
  AppendFixed32(MaskCrc32c(Crc32cExtend(Crc32c(block), trailer)), &trailer);
  WEFT_RETURN_IF_ERROR(sink_->Append(block));
  offset_ += block.size() + kTrailerBytes;
  return sink_->Append(trailer);
}

Status TableWriter::Finish() {
  WEFT_RETURN_IF_ERROR(EndDataBlock());
  if (pending_) AddPending(Successor(last_key_));
  BlockHandle metaindex, index;
  WEFT_RETURN_IF_ERROR(WriteBlock(BlockBuilder(1).Finish(), &metaindex));
  WEFT_RETURN_IF_ERROR(WriteBlock(index_.Finish(), &index));
  std::string footer;
  AppendHandle(metaindex, &footer);
  AppendHandle(index, &footer);
  footer.resize(kHandlesBytes);
  AppendFixed64(kMagic, &footer);
  return sink_->Append(footer);
}

StatusOr<std::unique_ptr<Table>> Table::Open(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenRead(path));
  std::unique_ptr<Table> table(new Table(std::move(file), path, stat.size_bytes));
  WEFT_RETURN_IF_ERROR(table->ReadFooter());
  return table;
}

Status Table::ReadFooter() {
  if (file_bytes_ < kFooterBytes) return Damaged("it is too short to be a table");
  char footer[kFooterBytes];
  WEFT_ASSIGN_OR_RETURN(const size_t got,
                        file_->ReadAt(file_bytes_ - kFooterBytes, absl::MakeSpan(footer)));
  if (got < kFooterBytes) return Damaged("it shrank while it was read");
  if (LoadFixed64(footer + kHandlesBytes) != kMagic)
    return Damaged("it is not a table or cut short");
  absl::string_view handles(footer, kHandlesBytes);
  BlockHandle metaindex, index;
  if (!TakeHandle(&handles, &metaindex) || !TakeHandle(&handles, &index)) {
    return Damaged("bad footer");
  }
  WEFT_ASSIGN_OR_RETURN(index_, ReadBlock(index));
  return absl::OkStatus();
}

StatusOr<std::shared_ptr<const std::string>> Table::ReadBlock(BlockHandle handle) const {
  if (handle.size > file_bytes_ || handle.offset > file_bytes_ - handle.size ||
      kTrailerBytes > file_bytes_ - handle.size - handle.offset) {
    return Damaged(absl::StrCat("a block of ", handle.size, " bytes at offset ", handle.offset,
                                " reaches beyond its ", file_bytes_, " bytes"));
  }
  const auto size = static_cast<size_t>(handle.size);
  auto block = std::make_shared<std::string>(size + kTrailerBytes, '\0');
  WEFT_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(handle.offset, absl::MakeSpan(*block)));
  if (got < block->size()) return Damaged("it shrank while it was read");
  const char type = (*block)[size];
  const uint32_t checksum = LoadFixed32(block->data() + size + 1);
  block->resize(size + 1);
  if (UnmaskCrc32c(checksum) != Crc32c(*block)) {
    return Damaged(absl::StrCat("bad checksum of the block at offset ", handle.offset));
  }
  block->resize(size);
  if (type == kTypePlain) return block;
  if (type != kTypeSnappy) {
    return Damaged(absl::StrCat("block of unknown type ", static_cast<int>(type)));
  }
  size_t plain_size = 0;
  auto plain = std::make_shared<std::string>();
  if (!snappy::GetUncompressedLength(block->data(), size, &plain_size) ||
      plain_size / kMostSnappyRatio > size ||
      !snappy::Uncompress(block->data(), size, plain.get())) {
    return Damaged(absl::StrCat("bad snappy data at offset ", handle.offset));
  }
  return plain;
}

StatusOr<std::shared_ptr<const std::string>> Table::BlockAt(
    absl::string_view encoded_handle) const {
  BlockHandle handle;
  if (!TakeHandle(&encoded_handle, &handle)) return Damaged("bad index entry");
  {
    absl::MutexLock lock(&mutex_);
    if (cached_ && cached_offset_ == handle.offset) return cached_;
  }
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<const std::string> block, ReadBlock(handle));
  absl::MutexLock lock(&mutex_);
  cached_offset_ = handle.offset;
  cached_ = block;
  return block;
}

StatusOr<std::optional<std::string>> Table::Find(absl::string_view key) const {
  Iterator iterator(this);
  iterator.Seek(key);
  WEFT_RETURN_IF_ERROR(iterator.status());
  if (!iterator.Valid() || iterator.key() != key) return std::optional<std::string>();
  return std::optional<std::string>(iterator.value());
}

Status Table::Damaged(absl::string_view what) const {
  return DataLoss("Damaged table file (", what, "): ", path_);
}

Table::Iterator::Iterator(const Table* table) : table_(table), index_(table->index_) {
  LoadBlock();
  SkipEmpty();
}

void Table::Iterator::LoadBlock() {
  data_ = BlockCursor();
  if (!index_.status().ok()) status_ = Annotate(index_.status(), table_->path_);
  if (!status_.ok() || !index_.Valid()) return;
  StatusOr<std::shared_ptr<const std::string>> block = table_->BlockAt(index_.value());
  if (!block.ok()) {
    status_ = block.status();
    return;
  }
  data_ = BlockCursor(*std::move(block));
}

void Table::Iterator::SkipEmpty() {
  while (status_.ok() && !data_.Valid()) {
    if (!data_.status().ok()) {
      status_ = Annotate(data_.status(), table_->path_);
      return;
    }
    if (!index_.Valid()) return;
    index_.Next();
    LoadBlock();
  }
}

void Table::Iterator::Next() {
  if (!Valid()) return;
  const std::string previous(key());
  data_.Next();
  SkipEmpty();
  if (Valid() && key() <= previous) {
    status_ = table_->Damaged("keys are out of order");
    data_ = BlockCursor();
  }
}

void Table::Iterator::Seek(absl::string_view target) {
  status_ = Status();
  index_ = BlockCursor(table_->index_);
  index_.Seek(target);
  LoadBlock();
  data_.Seek(target);
  SkipEmpty();
}

}  // namespace weft::storage
