// SPDX-License-Identifier: Apache-2.0
// Tensor bundles: checkpoints of format V2, `<prefix>.index` and `<prefix>.data-00000-of-00001`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/byte_stream.h"
#include "weft/storage/table.h"
#include "weft/storage/tensor_slice.h"
#include "weft/tensor/tensor.h"

namespace tensorflow {
class BundleEntryProto;
}

namespace weft::storage {

// Writes a bundle of one shard under temporary names and gives it its own names in Finish, data
// first, so that a reader finds all of it or no index. Not thread-safe.
class BundleWriter {
 public:
  struct Options {
    // Each tensor starts at a multiple of this.
    int64_t data_alignment = 1;
    // Whether Finish waits for the disk. Off only where losing the files to a crash is fine.
    bool sync = true;
  };
  // Makes the folder of `prefix` if it is not there. Borrows `files`.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem& files, std::string prefix,
                                                        Options options);
  static StatusOr<std::unique_ptr<BundleWriter>> Create(FileSystem& files, std::string prefix) {
    return Create(files, std::move(prefix), Options());
  }
  // Removes what an unfinished writer left.
  ~BundleWriter();

  // In any order of names. InvalidArgument for an empty or repeated name, a resource, a variant
  // that cannot be encoded; after an error of the disk every call gives that error.
  Status Add(absl::string_view name, const Tensor& tensor);
  // One part of the tensor `name` of shape `full`.
  Status AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                  const Tensor& tensor);
  Status Finish();

 private:
  BundleWriter(FileSystem& files, std::string prefix, Options options);
  Status CheckName(absl::string_view name) const;
  // Appends the bytes of `tensor` and makes its entry.
  Status Store(const std::string& key, const Tensor& tensor);
  Status Append(absl::string_view bytes);
  Status WriteIndex();

  FileSystem& files_;
  const std::string prefix_;
  const Options options_;
  const std::string temp_data_path_;
  const std::string temp_index_path_;
  std::unique_ptr<ByteSink> data_;
  int64_t offset_ = 0;
  std::map<std::string, tensorflow::BundleEntryProto> entries_;
  Status status_;
  bool finished_ = false;
};

// One tensor of a bundle.
struct BundleTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape;
  std::vector<TensorSlice> slices;  // empty: stored whole
};

// Reads bundles. Thread-safe. NotFound for a missing file or name; DataLoss, naming file and
// tensor, for files that are torn or damaged: every byte read is checked.
class BundleReader {
 public:
  // Borrows `files`.
  static StatusOr<std::unique_ptr<BundleReader>> Open(FileSystem& files, std::string prefix);
  ~BundleReader();

  int num_shards() const { return num_shards_; }
  const std::string& prefix() const { return prefix_; }
  // All tensors in order of their names; slices do not count as tensors of their own.
  StatusOr<std::vector<BundleTensor>> List() const;
  // DataLoss or NotFound naming the first data file that is missing or shorter than the index says.
  Status CheckDataFiles() const;
  StatusOr<bool> Contains(absl::string_view name) const;
  StatusOr<BundleTensor> Describe(absl::string_view name) const;
  // The whole tensor, put together from its slices if need be.
  StatusOr<Tensor> Read(absl::string_view name, Allocator& allocator = HostAllocator()) const;
  // A part of it, however it is stored. InvalidArgument if `slice` is not inside the tensor.
  StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice,
                             Allocator& allocator = HostAllocator()) const;

 private:
  struct Entry;
  struct Shard;
  BundleReader(FileSystem& files, std::string prefix, std::unique_ptr<Table> index);
  Status ReadHeader();
  StatusOr<Entry> FindEntry(absl::string_view name) const;
  StatusOr<Entry> ParseEntry(absl::string_view name, absl::string_view bytes) const;
  StatusOr<std::shared_ptr<Shard>> OpenShard(int shard) const;
  // The bytes of an entry that has no slices.
  StatusOr<Tensor> ReadEntry(const Entry& entry, Allocator& allocator) const;
  StatusOr<Tensor> Assemble(const Entry& entry, const TensorSlice& wanted,
                            Allocator& allocator) const;

  FileSystem& files_;
  const std::string prefix_;
  const std::unique_ptr<Table> index_;
  int num_shards_ = 0;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<int, std::shared_ptr<Shard>> shards_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::storage
