// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/bundle_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "proto/tensorflow/tensor_bundle.pb.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/table.h"

namespace weft::storage {
namespace {

using tensorflow::BundleEntryProto;
using tensorflow::BundleHeaderProto;

// What has been read of the inputs.
struct Merged {
  std::map<std::string, BundleEntryProto> entries;
  std::vector<std::string> data_paths;  // in order of their new shard numbers
  int32_t producer = 0;
  int32_t min_consumer = 0;
};

Status AddEntry(const std::string& prefix, absl::string_view key, BundleEntryProto entry,
                Merged* merged) {
  const auto [found, is_new] = merged->entries.try_emplace(std::string(key));
  BundleEntryProto& old = found->second;
  if (is_new) {
    old = std::move(entry);
    return absl::OkStatus();
  }
  if (entry.slices().empty() || old.slices().empty()) {
    return InvalidArgument("Tensor stands in two of the checkpoints to merge: '", key,
                           "', again in ", prefix);
  }
  if (entry.dtype() != old.dtype() ||
      entry.shape().SerializeAsString() != old.shape().SerializeAsString()) {
    return InvalidArgument("Slices of tensor '", key,
                           "' contradict each other in dtype or shape, seen in ", prefix);
  }
  old.mutable_slices()->MergeFrom(entry.slices());
  return absl::OkStatus();
}

Status ReadInput(FileSystem& files, const std::string& prefix, Merged* merged) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Table> table,
                        Table::Open(files, BundleIndexPath(prefix)));
  Table::Iterator iterator(table.get());
  BundleHeaderProto header;
  if (!iterator.Valid() || iterator.key() != kBundleHeaderKey ||
      !header.ParseFromString(std::string(iterator.value())) || header.num_shards() < 1) {
    WEFT_RETURN_IF_ERROR(iterator.status());
    return DataLoss("Checkpoint index has no valid header: ", table->path());
  }
  if (header.endianness() != BundleHeaderProto::LITTLE) {
    return Unimplemented("Checkpoint was written on a big-endian machine: ", prefix);
  }
  merged->producer = std::max(merged->producer, header.version().producer());
  merged->min_consumer = std::max(merged->min_consumer, header.version().min_consumer());
  const int first_shard = static_cast<int>(merged->data_paths.size());
  for (int shard = 0; shard < header.num_shards(); ++shard) {
    merged->data_paths.push_back(BundleDataPath(prefix, shard, header.num_shards()));
    WEFT_RETURN_IF_ERROR(files.Stat(merged->data_paths.back()).status());
  }
  for (iterator.Next(); iterator.Valid(); iterator.Next()) {
    BundleEntryProto entry;
    if (!entry.ParseFromString(std::string(iterator.value())) || entry.shard_id() < 0 ||
        entry.shard_id() >= header.num_shards()) {
      return DataLoss("Bad entry of tensor '", iterator.key(), "' in checkpoint index ",
                      table->path());
    }
    // An entry that only lists slices has no bytes, and so no shard.
    if (entry.slices().empty()) entry.set_shard_id(first_shard + entry.shard_id());
    WEFT_RETURN_IF_ERROR(AddEntry(prefix, iterator.key(), std::move(entry), merged));
  }
  return iterator.status();
}

Status WriteIndex(FileSystem& files, const Merged& merged, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        files.OpenWrite(path, WriteMode::kTruncate));
  const std::unique_ptr<ByteSink> sink = MakeSink(std::move(file), path, Compression::kNone);
  TableWriter table(sink.get());
  BundleHeaderProto header;
  header.set_num_shards(static_cast<int>(merged.data_paths.size()));
  header.mutable_version()->set_producer(merged.producer);
  header.mutable_version()->set_min_consumer(merged.min_consumer);
  WEFT_RETURN_IF_ERROR(table.Add(kBundleHeaderKey, header.SerializeAsString()));
  for (const auto& [key, entry] : merged.entries) {
    WEFT_RETURN_IF_ERROR(table.Add(key, entry.SerializeAsString()));
  }
  WEFT_RETURN_IF_ERROR(table.Finish());
  WEFT_RETURN_IF_ERROR(sink->Sync());
  return sink->Close();
}

Status MoveIntoPlace(FileSystem& files, const Merged& merged, const std::string& merged_prefix,
                     const std::string& temp_index) {
  const int count = static_cast<int>(merged.data_paths.size());
  for (int shard = 0; shard < count; ++shard) {
    WEFT_RETURN_IF_ERROR(
        files.Rename(merged.data_paths[shard], BundleDataPath(merged_prefix, shard, count)));
  }
  WEFT_RETURN_IF_ERROR(files.Rename(temp_index, BundleIndexPath(merged_prefix)));
  return files.SyncDirectory(ParentPath(merged_prefix));
}

}  // namespace

Status MergeBundles(FileSystem& files, absl::Span<const std::string> prefixes,
                    const std::string& merged_prefix, const MergeOptions& options) {
  Merged merged;
  std::set<std::string> seen;
  for (const std::string& prefix : prefixes) {
    if (prefix == merged_prefix || !seen.insert(prefix).second) {
      return InvalidArgument("Checkpoint is merged with itself: ", prefix);
    }
    const Status status = files.Stat(BundleIndexPath(prefix)).status();
    if (options.allow_missing && absl::IsNotFound(status)) continue;
    WEFT_RETURN_IF_ERROR(ReadInput(files, prefix, &merged));
  }
  if (merged.data_paths.empty()) {
    return NotFound("There is no checkpoint to merge into ", merged_prefix);
  }
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(ParentPath(merged_prefix)));
  const std::string temp_index = absl::StrCat(BundleIndexPath(merged_prefix), ".tempstate");
  Status status = WriteIndex(files, merged, temp_index);
  if (status.ok()) status = MoveIntoPlace(files, merged, merged_prefix, temp_index);
  if (!status.ok()) {
    files.Delete(temp_index).IgnoreError();
    return status;
  }
  // The checkpoint stands; what is left of the inputs is litter, and failing to remove it no error.
  for (const std::string& prefix : prefixes) files.Delete(BundleIndexPath(prefix)).IgnoreError();
  if (!options.delete_old_dirs) return absl::OkStatus();
  for (const std::string& prefix : prefixes) {
    const std::string folder = ParentPath(prefix);
    if (folder != ParentPath(merged_prefix)) files.Delete(folder).IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace weft::storage
