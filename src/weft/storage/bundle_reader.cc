// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "base/crc32c.h"
#include "base/mapped_files.h"
#include "proto/tensorflow/tensor_bundle.pb.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/tensor_bundle.h"
#include "weft/tensor/shape_proto.h"

namespace weft::storage {
namespace {
constexpr size_t kPieceBytes = size_t{4} << 20;    // large enough for a request to an object store
constexpr size_t kLeastMapped = size_t{64} << 10;  // smaller ones are read, a page costs more

// Null where the bytes have to be read.
Ref<Buffer> MapPart(const ReadableFile& file, DType dtype, uint64_t offset, uint64_t size) {
  const auto* mappable = dynamic_cast<const MappableFile*>(&file);
  const bool fits = size >= kLeastMapped && offset % DTypeSize(dtype) == 0;
  if (mappable == nullptr || !fits || dtype == DType::kBool) return nullptr;
  std::shared_ptr<char> bytes = mappable->Map(offset, size);
  if (bytes == nullptr) return nullptr;
  auto* data = reinterpret_cast<std::byte*>(bytes.get());
  return WrapMemory(data, size, [bytes]() mutable { bytes.reset(); });
}
}  // namespace

struct BundleReader::Entry {
  BundleTensor tensor;
  int shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t crc = 0;  // unmasked
};

// An open data file.
struct BundleReader::Shard {
  std::string path;
  uint64_t size = 0;
  std::unique_ptr<ReadableFile> file;
};

BundleReader::BundleReader(FileSystem& files, std::string prefix, std::unique_ptr<Table> index)
    : files_(files), prefix_(std::move(prefix)), index_(std::move(index)) {}

BundleReader::~BundleReader() = default;

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(FileSystem& files, std::string prefix) {
  StatusOr<std::unique_ptr<Table>> index = Table::Open(files, BundleIndexPath(prefix));
  if (!index.ok()) {
    return Annotate(index.status(), absl::StrCat("Checkpoint cannot be opened: ", prefix));
  }
  std::unique_ptr<BundleReader> reader(
      new BundleReader(files, std::move(prefix), *std::move(index)));
  WEFT_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

Status BundleReader::ReadHeader() {
  WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, index_->Find(kBundleHeaderKey));
  tensorflow::BundleHeaderProto header;
  if (!bytes.has_value() || !header.ParseFromString(*bytes) || header.num_shards() < 1) {
    return DataLoss("Checkpoint index has no valid header: ", index_->path());
  }
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE) {
    return Unimplemented("Checkpoint was written on a big-endian machine: ", prefix_);
  }
  const auto& bad = header.version().bad_consumers();
  if (header.version().min_consumer() > kBundleVersion ||
      std::find(bad.begin(), bad.end(), kBundleVersion) != bad.end()) {
    return InvalidArgument("Checkpoint needs a reader of version ", header.version().min_consumer(),
                           ", this one has ", kBundleVersion, ": ", prefix_);
  }
  num_shards_ = header.num_shards();
  return absl::OkStatus();
}

StatusOr<BundleReader::Entry> BundleReader::ParseEntry(absl::string_view name,
                                                       absl::string_view bytes) const {
  const auto damaged = [&](absl::string_view what) {
    return DataLoss("Bad entry of tensor '", name, "' (", what, ") in checkpoint index ",
                    index_->path());
  };
  tensorflow::BundleEntryProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return damaged("malformed message");
  }
  StatusOr<DType> dtype = DTypeFromNumber(proto.dtype());
  if (!dtype.ok()) return damaged(dtype.status().message());
  StatusOr<Shape> shape = ShapeFromProto(proto.shape());
  if (!shape.ok()) return damaged(shape.status().message());
  if (proto.shard_id() < 0 || proto.shard_id() >= num_shards_) {
    return damaged(absl::StrCat("shard ", proto.shard_id(), " of ", num_shards_));
  }
  if (proto.offset() < 0 || proto.size() < 0) return damaged("negative offset or size");
  Entry entry;
  entry.tensor = {.name = std::string(name), .dtype = *dtype, .shape = *std::move(shape)};
  entry.shard = proto.shard_id();
  entry.offset = static_cast<uint64_t>(proto.offset());
  entry.size = static_cast<uint64_t>(proto.size());
  entry.crc = UnmaskCrc32c(proto.crc32c());
  for (const auto& slice_proto : proto.slices()) {
    StatusOr<TensorSlice> slice = TensorSlice::FromProto(slice_proto);
    const Status fits = slice.ok() ? slice->Within(entry.tensor.shape).status() : slice.status();
    if (!fits.ok()) return damaged(fits.message());
    entry.tensor.slices.push_back(*std::move(slice));
  }
  return entry;
}

StatusOr<BundleReader::Entry> BundleReader::FindEntry(absl::string_view name) const {
  std::optional<std::string> bytes;
  if (!name.empty()) {
    WEFT_ASSIGN_OR_RETURN(bytes, index_->Find(name));
  }
  if (!bytes.has_value()) {
    return NotFound("Key ", name, " not found in checkpoint ", prefix_);
  }
  return ParseEntry(name, *bytes);
}

StatusOr<std::vector<BundleTensor>> BundleReader::List() const {
  std::vector<BundleTensor> tensors;
  Table::Iterator iterator(index_.get());
  for (; iterator.Valid(); iterator.Next()) {
    if (iterator.key() == kBundleHeaderKey || IsBundleSliceKey(iterator.key())) continue;
    WEFT_ASSIGN_OR_RETURN(Entry entry, ParseEntry(iterator.key(), iterator.value()));
    tensors.push_back(std::move(entry.tensor));
  }
  WEFT_RETURN_IF_ERROR(iterator.status());
  return tensors;
}

Status BundleReader::CheckDataFiles() const {
  std::map<int, uint64_t> ends;
  Table::Iterator iterator(index_.get());
  for (; iterator.Valid(); iterator.Next()) {
    if (iterator.key() == kBundleHeaderKey) continue;
    WEFT_ASSIGN_OR_RETURN(const Entry entry, ParseEntry(iterator.key(), iterator.value()));
    if (!entry.tensor.slices.empty()) continue;
    uint64_t& end = ends[entry.shard];
    end = std::max(end, entry.offset + entry.size);
  }
  WEFT_RETURN_IF_ERROR(iterator.status());
  for (const auto& [shard, end] : ends) {
    const std::string path = BundleDataPath(prefix_, shard, num_shards_);
    WEFT_ASSIGN_OR_RETURN(const FileStat stat, files_.Stat(path));
    if (stat.size_bytes >= end) continue;
    return DataLoss("Data file ", path, " is cut short: it has ", stat.size_bytes,
                    " bytes, its tensors end at ", end);
  }
  return absl::OkStatus();
}

StatusOr<bool> BundleReader::Contains(absl::string_view name) const {
  if (name.empty()) return false;
  WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, index_->Find(name));
  return bytes.has_value();
}

StatusOr<BundleTensor> BundleReader::Describe(absl::string_view name) const {
  WEFT_ASSIGN_OR_RETURN(Entry entry, FindEntry(name));
  return std::move(entry.tensor);
}

StatusOr<std::shared_ptr<BundleReader::Shard>> BundleReader::OpenShard(int shard) const {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Shard>& slot = shards_[shard];
  if (slot) return slot;
  auto opened = std::make_shared<Shard>();
  opened->path = BundleDataPath(prefix_, shard, num_shards_);
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, files_.Stat(opened->path));
  opened->size = stat.size_bytes;
  WEFT_ASSIGN_OR_RETURN(opened->file, files_.OpenRead(opened->path));
  slot = std::move(opened);
  return slot;
}

StatusOr<Tensor> BundleReader::ReadEntry(const Entry& entry, Allocator& allocator) const {
  const BundleTensor& info = entry.tensor;
  StatusOr<std::shared_ptr<Shard>> opened = OpenShard(entry.shard);
  if (!opened.ok()) {
    return Annotate(opened.status(), absl::StrCat("Tensor '", info.name, "' cannot be read"));
  }
  const Shard& shard = **opened;
  const auto damaged = [&](absl::string_view what) {
    return DataLoss("Tensor '", info.name, "' is damaged (", what, ") in file ", shard.path);
  };
  if (entry.size > shard.size || entry.offset > shard.size - entry.size) {
    return damaged(absl::StrCat("it needs bytes ", entry.offset, " to ", entry.offset + entry.size,
                                ", the file has ", shard.size));
  }
  const bool plain = IsPlain(info.dtype);
  Tensor tensor;
  std::string bytes;
  absl::Span<char> target;
  if (plain) {
    int64_t expected = 0;
    if (__builtin_mul_overflow(info.shape.num_elements(),
                               static_cast<int64_t>(DTypeSize(info.dtype)), &expected) ||
        static_cast<uint64_t>(expected) != entry.size) {
      return damaged(absl::StrCat("it has ", entry.size, " bytes, its type is ",
                                  DTypeName(info.dtype), " ", info.shape.ToString()));
    }
    if (Ref<Buffer> part = MapPart(*shard.file, info.dtype, entry.offset, entry.size)) {
      const auto* data = reinterpret_cast<const char*>(part->data());
      if (Crc32cExtend(0, {data, entry.size}) != entry.crc) return damaged("bad checksum");
      return Tensor(info.dtype, info.shape, std::move(part));
    }
    WEFT_ASSIGN_OR_RETURN(tensor, Tensor::Allocate(info.dtype, info.shape, allocator));
    target = absl::MakeSpan(reinterpret_cast<char*>(tensor.bytes()), entry.size);
  } else {
    bytes.resize(entry.size);
    target = absl::MakeSpan(bytes);
  }
  uint32_t crc = 0;
  // The sum is taken of what has just come, while the cache holds it.
  for (size_t at = 0; at < target.size();) {
    const absl::Span<char> piece = target.subspan(at, kPieceBytes);
    WEFT_ASSIGN_OR_RETURN(const size_t got, shard.file->ReadAt(entry.offset + at, piece));
    if (got < piece.size()) return damaged("the file shrank while it was read");
    if (plain) crc = Crc32cExtend(crc, {piece.data(), piece.size()});
    at += piece.size();
  }
  if (!plain) {
    if (info.dtype != DType::kString && info.dtype != DType::kVariant) {
      return damaged("resources cannot be stored");
    }
    StatusOr<Tensor> decoded = info.dtype == DType::kString
                                   ? DecodeStrings(info.shape, bytes, &crc)
                                   : DecodeVariants(info.shape, bytes, &crc);
    if (!decoded.ok()) return damaged(decoded.status().message());
    tensor = *std::move(decoded);
  }
  if (crc != entry.crc) return damaged("bad checksum");
  if (info.dtype == DType::kBool) {
    for (char& byte : target) byte = byte != 0;
  }
  return tensor;
}

StatusOr<Tensor> BundleReader::Read(absl::string_view name, Allocator& allocator) const {
  WEFT_ASSIGN_OR_RETURN(const Entry entry, FindEntry(name));
  if (entry.tensor.slices.empty()) return ReadEntry(entry, allocator);
  WEFT_ASSIGN_OR_RETURN(const TensorSlice all,
                        TensorSlice::Full(entry.tensor.shape.rank()).Within(entry.tensor.shape));
  return Assemble(entry, all, allocator);
}

StatusOr<Tensor> BundleReader::ReadSlice(absl::string_view name, const TensorSlice& slice,
                                         Allocator& allocator) const {
  WEFT_ASSIGN_OR_RETURN(const Entry entry, FindEntry(name));
  StatusOr<TensorSlice> wanted = slice.Within(entry.tensor.shape);
  if (!wanted.ok()) {
    return Annotate(wanted.status(), absl::StrCat("Tensor '", name, "' of checkpoint ", prefix_));
  }
  if (!entry.tensor.slices.empty()) return Assemble(entry, *wanted, allocator);
  // The checksum is over the whole tensor, so the whole is read.
  WEFT_ASSIGN_OR_RETURN(Tensor whole, ReadEntry(entry, allocator));
  if (wanted->shape() == whole.shape()) return whole;
  WEFT_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(whole.dtype(), wanted->shape(), allocator));
  WEFT_ASSIGN_OR_RETURN(const TensorSlice all,
                        TensorSlice::Full(whole.rank()).Within(whole.shape()));
  CopyShared(all, whole, *wanted, &part);
  return part;
}

StatusOr<Tensor> BundleReader::Assemble(const Entry& entry, const TensorSlice& wanted,
                                        Allocator& allocator) const {
  const BundleTensor& info = entry.tensor;
  const auto damaged = [&](absl::string_view what) {
    return DataLoss("Slices of tensor '", info.name, "' ", what, " in checkpoint ", prefix_);
  };
  // First see that the slices cover what is wanted once and only once; then take memory for it.
  std::vector<std::pair<TensorSlice, TensorSlice>> pieces;  // as stored, and resolved
  int64_t covered = 0;
  for (const TensorSlice& stored : info.slices) {
    WEFT_ASSIGN_OR_RETURN(TensorSlice inside, stored.Within(info.shape));
    TensorSlice both;
    if (!Intersect(inside, wanted, &both)) continue;
    for (const auto& piece : pieces) {
      TensorSlice overlap;
      if (Intersect(piece.second, both, &overlap)) return damaged("overlap");
    }
    covered += both.shape().num_elements();
    pieces.emplace_back(stored, std::move(inside));
  }
  const Shape shape = wanted.shape();
  if (covered != shape.num_elements()) {
    return damaged(absl::StrCat("cover ", covered, " of ", shape.num_elements(), " elements"));
  }
  std::vector<Entry> entries;
  for (const auto& [stored, inside] : pieces) {
    WEFT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                          index_->Find(BundleSliceKey(info.name, stored)));
    if (!bytes.has_value()) return damaged(absl::StrCat("lack ", stored.ToString()));
    WEFT_ASSIGN_OR_RETURN(Entry part, ParseEntry(info.name, *bytes));
    if (part.tensor.dtype != info.dtype || part.tensor.shape != inside.shape() ||
        !part.tensor.slices.empty()) {
      return damaged(absl::StrCat("contradict the entry of ", stored.ToString()));
    }
    entries.push_back(std::move(part));
  }
  Tensor result;
  for (size_t i = 0; i < entries.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const Tensor part, ReadEntry(entries[i], allocator));
    // After the first piece is there, the whole is no longer a mere claim of the index.
    if (!result.IsInitialized()) {
      WEFT_ASSIGN_OR_RETURN(result, Tensor::Allocate(info.dtype, shape, allocator));
    }
    CopyShared(pieces[i].second, part, wanted, &result);
  }
  if (result.IsInitialized()) return result;
  return Tensor::Allocate(info.dtype, shape, allocator);
}

}  // namespace weft::storage
