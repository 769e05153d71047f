// SPDX-License-Identifier: Apache-2.0
// Datasets in folders, as TensorFlow writes them: snapshot.metadata, and beside it a folder for
// each time the dataset was written, in it one for each shard, in it files of records.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/data/dataset_op.h"
#include "weft/storage/tfrecord.h"

namespace weft::data {

// The version of the files' format that is written and read: each component a record.
inline constexpr int64_t kSnapshotVersion = 2;

// What snapshot.metadata says.
struct SnapshotMetadata {
  std::string graph_hash;
  std::string run_id;
  int64_t version = kSnapshotVersion;
  AttrValue::TypeList types;
  int64_t num_elements = kUnknown;
  bool is_complete = false;
};

// Nothing where the folder has none. DataLoss where the file is no metadata.
StatusOr<std::optional<SnapshotMetadata>> ReadSnapshotMetadata(FileSystem& files,
                                                               const std::string& folder);
Status WriteSnapshotMetadata(FileSystem& files, const std::string& folder,
                             const SnapshotMetadata& metadata);

// Writes one dataset into `folder`. Not thread-safe. Only after Finish do readers take it as whole.
class SnapshotWriter {
 public:
  static StatusOr<std::unique_ptr<SnapshotWriter>> Create(FileSystem& files, std::string folder,
                                                          storage::Compression compression,
                                                          SnapshotMetadata metadata);
  Status Write(int64_t shard, const Element& element);
  Status Finish();

 private:
  SnapshotWriter(FileSystem& files, std::string folder, storage::Compression compression,
                 SnapshotMetadata metadata)
      : files_(files),
        folder_(std::move(folder)),
        compression_(compression),
        metadata_(std::move(metadata)) {}

  FileSystem& files_;
  const std::string folder_;
  const storage::Compression compression_;
  SnapshotMetadata metadata_;
  std::map<int64_t, std::unique_ptr<storage::RecordWriter>> shards_;
};

// Compression by the names of attributes; Unimplemented for SNAPPY, which is not read or written.
StatusOr<storage::Compression> SnapshotCompression(const std::string& name);

// The elements of one shard's folder, without the first `start`.
StatusOr<DatasetRef> SnapshotShard(std::string folder, storage::Compression compression,
                                   int64_t version, int64_t start, ElementSpec spec);
// A dataset whose elements are datasets: one for each shard of what `metadata` tells of.
StatusOr<DatasetRef> SnapshotShards(FileSystem& files, const std::string& folder,
                                    const SnapshotMetadata& metadata,
                                    storage::Compression compression, const ElementSpec& spec);

}  // namespace weft::data
