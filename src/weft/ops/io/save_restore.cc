// SPDX-License-Identifier: Apache-2.0
// Checkpoints: SaveV2, RestoreV2, MergeV2Checkpoints and the names of shards.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"

#include "weft/kernel/op_spec.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/bundle_merge.h"
#include "weft/storage/slice_table.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::ops::io::save_restore {
namespace {

using storage::BundleReader;
using storage::BundleTensor;
using storage::BundleWriter;
using storage::ShapeAndSlice;

StatusOr<std::string> StringScalar(const Tensor& tensor, absl::string_view what) {
  if (tensor.num_elements() == 1) return tensor.scalar<std::string>();
  return InvalidArgument("Input ", what, " should be a scalar string, got shape ",
                         tensor.shape().ToString());
}

StatusOr<FileSystem*> FilesOf(const KernelContext& c) {
  if (c.environment().files != nullptr) return c.environment().files;
  return FailedPrecondition("This session has no file system");
}

// Checks the names and slices that save and restore share; `count` is the number of tensors.
Status CheckVectors(const Tensor& names, const Tensor& slices, int64_t count) {
  for (const auto& [tensor, what] :
       {std::pair(&names, "tensor_names"), std::pair(&slices, "shape_and_slices")}) {
    if (tensor->rank() != 1 || tensor->num_elements() != count) {
      return InvalidArgument("Input ", what, " should be a vector of ", count,
                             " strings, got shape ", tensor->shape().ToString());
    }
  }
  return absl::OkStatus();
}

class SaveKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string prefix, StringScalar(c.input(0), "prefix"));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    const int count = c.num_inputs() - 3;
    WEFT_RETURN_IF_ERROR(CheckVectors(c.input(1), c.input(2), count));
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<BundleWriter> writer,
                          BundleWriter::Create(*files, prefix));
    for (int i = 0; i < count; ++i) {
      const std::string& name = c.input(1).data<std::string>()[i];
      WEFT_RETURN_IF_ERROR(
          Annotate(Save(*writer, name, c.input(2).data<std::string>()[i], c.input(i + 3)),
                   absl::StrCat("Saving tensor '", name, "'")));
    }
    return writer->Finish();
  }

 private:
  static Status Save(BundleWriter& writer, const std::string& name, const std::string& text,
                     const Tensor& tensor) {
    WEFT_ASSIGN_OR_RETURN(const ShapeAndSlice part, ShapeAndSlice::Parse(text));
    if (part.whole) return writer.Add(name, tensor);
    WEFT_ASSIGN_OR_RETURN(const storage::TensorSlice slice, part.slice.Within(part.full_shape));
    if (!(slice.shape() == tensor.shape())) {
      return InvalidArgument("Slice \"", text, "\" has shape ", slice.shape().ToString(),
                             ", the tensor has ", tensor.shape().ToString());
    }
    return writer.AddSlice(name, part.full_shape, part.slice, tensor);
  }
};

class RestoreKernel final : public OpKernel {
 public:
  explicit RestoreKernel(std::vector<DType> dtypes) : dtypes_(std::move(dtypes)) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(auto dtypes, c.Attr<AttrValue::TypeList>("dtypes"));
    return std::make_unique<RestoreKernel>(std::move(dtypes));
  }

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string prefix, StringScalar(c.input(0), "prefix"));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    WEFT_RETURN_IF_ERROR(
        CheckVectors(c.input(1), c.input(2), static_cast<int64_t>(dtypes_.size())));
    // A file of that very name is a checkpoint of the format before.
    if (!files->Stat(storage::BundleIndexPath(prefix)).ok()) {
      if (const StatusOr<FileStat> old = files->Stat(prefix); old.ok() && !old->is_directory) {
        return RestoreFirstFormat(c, *files, prefix);
      }
    }
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> reader, BundleReader::Open(*files, prefix));
    // Side by side: each is read from the disk's cache, which takes one thread as long as its sum.
    std::vector<Status> restored(dtypes_.size());
    c.ParallelFor(static_cast<int64_t>(dtypes_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        restored[static_cast<size_t>(i)] = RestoreOne(c, *reader, static_cast<int>(i));
      }
    });
    for (const Status& one : restored) WEFT_RETURN_IF_ERROR(one);
    return absl::OkStatus();
  }

 private:
  Status RestoreOne(KernelContext& c, const BundleReader& reader, int i) const {
    const std::string& prefix = reader.prefix();
    const std::string& name = c.input(1).data<std::string>()[i];
    const DType dtype = dtypes_[static_cast<size_t>(i)];
    WEFT_ASSIGN_OR_RETURN(const BundleTensor found, reader.Describe(name));
    if (found.dtype != dtype) {
      return InvalidArgument("Tensor name \"", name, "\" in checkpoint ", prefix, " has dtype ",
                             DTypeName(found.dtype), ", expected ", DTypeName(dtype));
    }
    WEFT_ASSIGN_OR_RETURN(const ShapeAndSlice part,
                          ShapeAndSlice::Parse(c.input(2).data<std::string>()[i]));
    if (!part.whole && !(part.full_shape == found.shape)) {
      return InvalidArgument("Tensor name \"", name, "\" has shape ", found.shape.ToString(),
                             " in checkpoint ", prefix, ", the slice expects ",
                             part.full_shape.ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor value, part.whole ? reader.Read(name, c.device().allocator())
                                                   : reader.ReadSlice(name, part.slice));
    c.SetOutput(i, std::move(value));
    return absl::OkStatus();
  }

  Status RestoreFirstFormat(KernelContext& c, FileSystem& files, const std::string& path) const {
    WEFT_ASSIGN_OR_RETURN(const auto tables, storage::SliceTables::Open(files, {path}));
    for (size_t i = 0; i < dtypes_.size(); ++i) {
      const std::string& name = c.input(1).data<std::string>()[i];
      WEFT_ASSIGN_OR_RETURN(const DType found, tables->TypeOf(name));
      if (found != dtypes_[i]) {
        return InvalidArgument("Tensor name \"", name, "\" in checkpoint ", path, " has dtype ",
                               DTypeName(found), ", expected ", DTypeName(dtypes_[i]));
      }
      WEFT_ASSIGN_OR_RETURN(const ShapeAndSlice part,
                            ShapeAndSlice::Parse(c.input(2).data<std::string>()[i]));
      WEFT_ASSIGN_OR_RETURN(Tensor value,
                            part.whole ? tables->Read(name) : tables->ReadSlice(name, part.slice));
      c.SetOutput(static_cast<int>(i), std::move(value));
    }
    return absl::OkStatus();
  }

  const std::vector<DType> dtypes_;
};

class MergeKernel final : public OpKernel {
 public:
  explicit MergeKernel(storage::MergeOptions options) : options_(options) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<MergeKernel>(
        storage::MergeOptions{.delete_old_dirs = c.AttrOr<bool>("delete_old_dirs", true),
                              .allow_missing = c.AttrOr<bool>("allow_missing_files", false)});
  }
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1) {
      return InvalidArgument("Input checkpoint_prefixes should be a vector, got shape ",
                             c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const std::string merged, StringScalar(c.input(1), "destination_prefix"));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    return storage::MergeBundles(*files, c.input(0).span<std::string>(), merged, options_);
  }

 private:
  const storage::MergeOptions options_;
};

template <bool kSpec>
class ShardNameKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (c.input(i).rank() != 0) {
        return InvalidArgument(c.call().schema().inputs[i].name, " must be a scalar, got shape ",
                               c.input(i).shape().ToString());
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    const std::string& base = c.input(0).scalar<std::string>();
    if constexpr (kSpec) {
      *out->data<std::string>() =
          absl::StrFormat("%s-\?\?\?\?\?-of-%05d", base, c.input(1).scalar<int32_t>());
    } else {
      *out->data<std::string>() = absl::StrFormat(
          "%s-%05d-of-%05d", base, c.input(1).scalar<int32_t>(), c.input(2).scalar<int32_t>());
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SaveV2")
          .Doc("Saves tensors in V2 checkpoint format.\n"
               "prefix: scalar; tensor_names, shape_and_slices: one string a tensor. A slice is "
               "\"\" for all of it or \"sizes start,length:...\".")
          .Input("prefix: string")
          .Input("tensor_names: string")
          .Input("shape_and_slices: string")
          .Input("tensors: dtypes")
          .Attr("dtypes: list(type) >= 1")
          .Stateful()
          .Shape(shapes::NoOutputs)
          .NoGradient()
          .Kernel(MakeKernel<SaveKernel>(), KernelCost::kBlocking));
  catalogue.Add(
      OpSpec("RestoreV2")
          .Doc("Restores tensors from a V2 checkpoint, or from the one V1 file that `prefix` "
               "names.\n"
               "NotFound names a tensor that is not there, DataLoss a file that is damaged.")
          .Input("prefix: string")
          .Input("tensor_names: string")
          .Input("shape_and_slices: string")
          .Output("tensors: dtypes")
          .Attr("dtypes: list(type) >= 1")
          .Stateful()
          .Shape(shapes::Unknown)
          .NoGradient()
          .Kernel(MakeKernel<RestoreKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("MergeV2Checkpoints")
                    .Doc("Makes one checkpoint of the parts that several tasks wrote.")
                    .Input("checkpoint_prefixes: string")
                    .Input("destination_prefix: string")
                    .Attr("delete_old_dirs: bool = true")
                    .Attr("allow_missing_files: bool = false")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<MergeKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("ShardedFilename")
                    .Doc("Names one shard of a set of files: basename-00001-of-00003.")
                    .Input("basename: string")
                    .Input("shard: int32")
                    .Input("num_shards: int32")
                    .Output("filename: string")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ShardNameKernel<false>>(), KernelCost::kInline));
  catalogue.Add(OpSpec("ShardedFilespec")
                    .Doc("A pattern that all shards of a set of files match.")
                    .Input("basename: string")
                    .Input("num_shards: int32")
                    .Output("filename: string")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ShardNameKernel<true>>(), KernelCost::kInline));
}

}  // namespace weft::ops::io::save_restore
