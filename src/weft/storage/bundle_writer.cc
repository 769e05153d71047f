// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <unistd.h>

#include "absl/time/clock.h"

#include "base/crc32c.h"
#include "proto/tensorflow/tensor_bundle.pb.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/table.h"
#include "weft/storage/tensor_bundle.h"
#include "weft/tensor/shape_proto.h"

namespace weft::storage {
namespace {

constexpr size_t kDataBufferBytes = 64 << 10;
// What is summed stays in the cache until it is copied out.
constexpr size_t kBytesAtOnce = 256 << 10;

// Unlike that of any other writer of the same prefix.
std::string TempPath(const std::string& path) {
  return absl::StrCat(path, ".tempstate", getpid(), "-", absl::ToUnixNanos(absl::Now()));
}

}  // namespace

BundleWriter::BundleWriter(FileSystem& files, std::string prefix, Options options)
    : files_(files),
      prefix_(std::move(prefix)),
      options_(options),
      temp_data_path_(TempPath(BundleDataPath(prefix_, 0, 1))),
      temp_index_path_(TempPath(BundleIndexPath(prefix_))) {}

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(FileSystem& files, std::string prefix,
                                                             Options options) {
  if (options.data_alignment < 1) {
    return InvalidArgument("Alignment of a checkpoint's data must be at least 1, got ",
                           options.data_alignment);
  }
  std::unique_ptr<BundleWriter> writer(new BundleWriter(files, std::move(prefix), options));
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(ParentPath(writer->prefix_)));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        files.OpenWrite(writer->temp_data_path_,
                                        options.sync ? WriteMode::kThrough : WriteMode::kTruncate));
  writer->data_ =
      MakeSink(std::move(file), writer->temp_data_path_, Compression::kNone, kDataBufferBytes);
  return writer;
}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  // Best effort: the error that led here has been told already.
  if (data_) {
    data_->Close().IgnoreError();
    files_.Delete(temp_data_path_).IgnoreError();
  }
  files_.Delete(temp_index_path_).IgnoreError();
}

Status BundleWriter::CheckName(absl::string_view name) const {
  if (name.empty() || name[0] == '\0') {
    return InvalidArgument("Tensor in a checkpoint needs a name that is not empty: ", prefix_);
  }
  return absl::OkStatus();
}

Status BundleWriter::Add(absl::string_view name, const Tensor& tensor) {
  WEFT_RETURN_IF_ERROR(CheckName(name));
  return Store(std::string(name), tensor);
}

Status BundleWriter::AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                              const Tensor& tensor) {
  WEFT_RETURN_IF_ERROR(CheckName(name));
  WEFT_ASSIGN_OR_RETURN(const TensorSlice inside, slice.Within(full));
  if (tensor.shape() != inside.shape()) {
    return InvalidArgument("Slice ", slice.ToString(), " of ", full.ToString(), " of tensor '",
                           name,
                           "' does not have the shape of its value: ", tensor.shape().ToString());
  }
  const std::string key(name);
  if (tensor.shape() == full) return Store(key, tensor);

  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    const tensorflow::BundleEntryProto& entry = found->second;
    StatusOr<Shape> shape = ShapeFromProto(entry.shape());
    if (entry.slices().empty() || entry.dtype() != static_cast<int>(tensor.dtype()) ||
        !shape.ok() || *shape != full) {
      return InvalidArgument("Slices of tensor '", name,
                             "' contradict each other: ", DTypeName(tensor.dtype()), " ",
                             full.ToString(), " comes after another dtype or shape");
    }
  }
  WEFT_RETURN_IF_ERROR(Store(BundleSliceKey(name, slice), tensor));
  tensorflow::BundleEntryProto& entry = entries_[key];
  entry.set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  ShapeToProto(full, entry.mutable_shape());
  slice.ToProto(entry.add_slices());
  return absl::OkStatus();
}

Status BundleWriter::Append(absl::string_view bytes) {
  status_ = data_->Append(bytes);
  if (status_.ok()) offset_ += static_cast<int64_t>(bytes.size());
  return status_;
}

Status BundleWriter::Store(const std::string& key, const Tensor& tensor) {
  WEFT_RETURN_IF_ERROR(status_);
  if (finished_) return FailedPrecondition("Checkpoint is finished already: ", prefix_);
  if (entries_.contains(key)) {
    return InvalidArgument(
        "Tensor is in the checkpoint already: ", IsBundleSliceKey(key) ? "slice " : "", key);
  }
  EncodedObjects objects;
  const bool plain = IsPlain(tensor.dtype());
  if (tensor.dtype() == DType::kString) {
    WEFT_ASSIGN_OR_RETURN(objects, EncodeStrings(tensor));
  } else if (tensor.dtype() == DType::kVariant) {
    WEFT_ASSIGN_OR_RETURN(objects, EncodeVariants(tensor));
  } else if (!plain) {
    return InvalidArgument("Tensor '", key, "' cannot be saved: its dtype is ",
                           DTypeName(tensor.dtype()));
  }
  const auto alignment = options_.data_alignment;
  if (const int64_t beyond = offset_ % alignment; beyond != 0) {
    WEFT_RETURN_IF_ERROR(Append(std::string(static_cast<size_t>(alignment - beyond), '\0')));
  }
  const absl::string_view bytes =
      plain ? absl::string_view(reinterpret_cast<const char*>(tensor.bytes()), tensor.size_bytes())
            : objects.bytes;
  tensorflow::BundleEntryProto entry;
  entry.set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  ShapeToProto(tensor.shape(), entry.mutable_shape());
  entry.set_offset(offset_);
  entry.set_size(static_cast<int64_t>(bytes.size()));
  uint32_t crc = 0;
  for (size_t begin = 0; begin < bytes.size(); begin += kBytesAtOnce) {
    const absl::string_view part = bytes.substr(begin, kBytesAtOnce);
    if (plain) crc = Crc32cExtend(crc, part);
    WEFT_RETURN_IF_ERROR(Append(part));
  }
  entry.set_crc32c(MaskCrc32c(plain ? crc : objects.crc));
  entries_.emplace(key, std::move(entry));
  return absl::OkStatus();
}

Status BundleWriter::WriteIndex() {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        files_.OpenWrite(temp_index_path_, WriteMode::kTruncate));
  const std::unique_ptr<ByteSink> sink =
      MakeSink(std::move(file), temp_index_path_, Compression::kNone);
  TableWriter table(sink.get());
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(kBundleVersion);
  WEFT_RETURN_IF_ERROR(table.Add(kBundleHeaderKey, header.SerializeAsString()));
  for (const auto& [key, entry] : entries_) {
    WEFT_RETURN_IF_ERROR(table.Add(key, entry.SerializeAsString()));
  }
  WEFT_RETURN_IF_ERROR(table.Finish());
  if (options_.sync) WEFT_RETURN_IF_ERROR(sink->Sync());
  return sink->Close();
}

Status BundleWriter::Finish() {
  WEFT_RETURN_IF_ERROR(status_);
  if (finished_) return FailedPrecondition("Checkpoint is finished already: ", prefix_);
  // Whatever fails below, this writer is of no further use.
  status_ = Aborted("Checkpoint could not be finished: ", prefix_);
  if (options_.sync) WEFT_RETURN_IF_ERROR(data_->Sync());
  WEFT_RETURN_IF_ERROR(data_->Close());
  WEFT_RETURN_IF_ERROR(WriteIndex());
  WEFT_RETURN_IF_ERROR(files_.Rename(temp_data_path_, BundleDataPath(prefix_, 0, 1)));
  WEFT_RETURN_IF_ERROR(files_.Rename(temp_index_path_, BundleIndexPath(prefix_)));
  if (options_.sync) WEFT_RETURN_IF_ERROR(files_.SyncDirectory(ParentPath(prefix_)));
  finished_ = true;
  status_ = absl::OkStatus();
  return absl::OkStatus();
}

}  // namespace weft::storage
