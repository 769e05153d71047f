// SPDX-License-Identifier: Apache-2.0
#include "weft/data/snapshot_files.h"

#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "proto/tensorflow/snapshot.pb.h"
#include "weft/data/held_dataset.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::data {
namespace {

constexpr char kMetadataName[] = "snapshot.metadata";
constexpr char kShardSuffix[] = ".shard";
constexpr uint64_t kMostMetadata = 16 << 20;

std::string ShardFolder(const std::string& run, int64_t shard) {
  return JoinPath(run, absl::StrFormat("%08d%s", shard, kShardSuffix));
}
std::string FileOfShard(const std::string& shard, int64_t number) {
  return JoinPath(shard, absl::StrFormat("%08d.snapshot", number));
}

class Shard final : public Dataset {
 public:
  Shard(ElementSpec spec, std::string folder, storage::Compression compression, int64_t start)
      : Dataset(std::move(spec)),
        folder_(std::move(folder)),
        compression_(compression),
        start_(start) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Shard>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Shard> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      while (skipped_ < dataset_->start_) {
        ++skipped_;
        WEFT_ASSIGN_OR_RETURN(const bool found, ReadOne(element));
        if (!found) return false;
      }
      return ReadOne(element);
    }

   private:
    StatusOr<bool> ReadOne(Element* element) {
      element->clear();
      for (size_t i = 0; i < dataset_->spec().types.size(); ++i) {
        std::string record;
        WEFT_ASSIGN_OR_RETURN(const bool found, NextRecord(&record));
        if (!found && i == 0) return false;
        if (!found) return DataLoss("Shard ", dataset_->folder_, " ends inside of an element");
        WEFT_ASSIGN_OR_RETURN(Tensor value, ParseTensorProto(record));
        if (value.dtype() != dataset_->spec().types[i]) {
          return DataLoss("Component ", i, " in shard ", dataset_->folder_, " is of ",
                          DTypeName(value.dtype()), ", expected ",
                          DTypeName(dataset_->spec().types[i]));
        }
        element->push_back(std::move(value));
      }
      return true;
    }

    StatusOr<bool> NextRecord(std::string* record) {
      WEFT_RETURN_IF_ERROR(context_->Check());
      WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context_->files());
      while (true) {
        if (reader_ == nullptr) {
          const std::string path = FileOfShard(dataset_->folder_, next_file_);
          if (!files->Stat(path).ok()) return false;
          ++next_file_;
          WEFT_ASSIGN_OR_RETURN(reader_,
                                storage::RecordReader::Open(*files, path, dataset_->compression_));
        }
        WEFT_ASSIGN_OR_RETURN(const bool found, reader_->Next(record));
        if (found) return true;
        reader_.reset();
      }
    }

    const Ref<const Shard> dataset_;
    const ContextPtr context_;
    int64_t skipped_ = 0;
    int64_t next_file_ = 0;
    std::unique_ptr<storage::RecordReader> reader_;
  };

  const std::string folder_;
  const storage::Compression compression_;
  const int64_t start_;
};

}  // namespace

StatusOr<std::optional<SnapshotMetadata>> ReadSnapshotMetadata(FileSystem& files,
                                                               const std::string& folder) {
  const std::string path = JoinPath(folder, kMetadataName);
  const StatusOr<FileStat> stat = files.Stat(path);
  if (absl::IsNotFound(stat.status())) return std::optional<SnapshotMetadata>();
  WEFT_RETURN_IF_ERROR(stat.status());
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path, kMostMetadata));
  tensorflow::data::experimental::SnapshotMetadataRecord record;
  if (!record.ParseFromString(bytes)) return DataLoss("Can't parse ", path, " as binary proto");
  SnapshotMetadata metadata{.graph_hash = record.graph_hash(),
                            .run_id = record.run_id(),
                            .version = record.version(),
                            .types = {},
                            .num_elements = record.num_elements(),
                            .is_complete = record.finalized()};
  if (absl::StrContains(metadata.run_id, '/') || metadata.run_id == "..") {
    return DataLoss(path, " names a folder outside: ", metadata.run_id);
  }
  for (const int number : record.dtype()) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(number));
    metadata.types.push_back(dtype);
  }
  return std::optional<SnapshotMetadata>(std::move(metadata));
}

Status WriteSnapshotMetadata(FileSystem& files, const std::string& folder,
                             const SnapshotMetadata& metadata) {
  tensorflow::data::experimental::SnapshotMetadataRecord record;
  record.set_graph_hash(metadata.graph_hash);
  record.set_run_id(metadata.run_id);
  record.set_creation_timestamp(absl::ToUnixMicros(absl::Now()));
  record.set_version(metadata.version);
  for (const DType dtype : metadata.types) {
    record.add_dtype(static_cast<tensorflow::DataType>(dtype));
  }
  record.set_num_elements(metadata.num_elements);
  record.set_finalized(metadata.is_complete);
  return WriteFileAtomically(files, JoinPath(folder, kMetadataName), record.SerializeAsString());
}

StatusOr<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Create(FileSystem& files,
                                                                 std::string folder,
                                                                 storage::Compression compression,
                                                                 SnapshotMetadata metadata) {
  std::random_device random;
  metadata.run_id = absl::StrCat((static_cast<uint64_t>(random()) << 32) | random());
  metadata.version = kSnapshotVersion;
  metadata.num_elements = 0;
  metadata.is_complete = false;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(JoinPath(folder, metadata.run_id)));
  WEFT_RETURN_IF_ERROR(WriteSnapshotMetadata(files, folder, metadata));
  return std::unique_ptr<SnapshotWriter>(
      new SnapshotWriter(files, std::move(folder), compression, std::move(metadata)));
}

Status SnapshotWriter::Write(int64_t shard, const Element& element) {
  std::unique_ptr<storage::RecordWriter>& writer = shards_[shard];
  if (writer == nullptr) {
    const std::string path = ShardFolder(JoinPath(folder_, metadata_.run_id), shard);
    WEFT_RETURN_IF_ERROR(files_.MakeDirectories(path));
    WEFT_ASSIGN_OR_RETURN(
        writer, storage::RecordWriter::Create(files_, FileOfShard(path, 0), compression_));
  }
  for (const Tensor& component : element) {
    WEFT_ASSIGN_OR_RETURN(const std::string record, SerializeTensorProto(component));
    WEFT_RETURN_IF_ERROR(writer->Write(record));
  }
  ++metadata_.num_elements;
  return absl::OkStatus();
}

Status SnapshotWriter::Finish() {
  for (const auto& [shard, writer] : shards_) WEFT_RETURN_IF_ERROR(writer->Close());
  metadata_.is_complete = true;
  return WriteSnapshotMetadata(files_, folder_, metadata_);
}

StatusOr<storage::Compression> SnapshotCompression(const std::string& name) {
  if (name == "SNAPPY") {
    return Unimplemented(
        "Datasets compressed with SNAPPY are not read or written: use GZIP or no compression");
  }
  return storage::CompressionFromName(name == "AUTO" ? "" : name);
}

StatusOr<DatasetRef> SnapshotShard(std::string folder, storage::Compression compression,
                                   int64_t version, int64_t start, ElementSpec spec) {
  if (version != kSnapshotVersion) {
    return Unimplemented("Saved datasets of version ", version, " are not read: ", folder,
                         ". Write it again; version ", kSnapshotVersion, " is expected");
  }
  return DatasetRef(MakeRef<Shard>(std::move(spec), std::move(folder), compression, start));
}

StatusOr<DatasetRef> SnapshotShards(FileSystem& files, const std::string& folder,
                                    const SnapshotMetadata& metadata,
                                    storage::Compression compression, const ElementSpec& spec) {
  const std::string run = JoinPath(folder, metadata.run_id);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(run));
  std::vector<Element> shards;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, kShardSuffix)) continue;
    WEFT_ASSIGN_OR_RETURN(DatasetRef shard, SnapshotShard(JoinPath(run, name), compression,
                                                          metadata.version, 0, spec));
    shards.push_back({VariantOf(std::move(shard))});
  }
  return DatasetRef(MakeRef<HeldDataset>(ElementSpec{{DType::kVariant}, {PartialShape(Shape())}},
                                         std::move(shards)));
}

}  // namespace weft::data
