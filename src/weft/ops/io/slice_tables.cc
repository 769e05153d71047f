// SPDX-License-Identifier: Apache-2.0
// Checkpoints of format V1: Save, SaveSlices, Restore and RestoreSlice.
#include <memory>
#include <string>
#include <vector>

#include "weft/data/matching_files.h"
#include "weft/kernel/op_spec.h"
#include "weft/storage/slice_table.h"

namespace weft::ops::io::slice_tables {
namespace {

StatusOr<FileSystem*> FilesOf(const KernelContext& c) {
  if (c.environment().files != nullptr) return c.environment().files;
  return FailedPrecondition("This session has no file system");
}

StatusOr<std::string> OneString(const Tensor& tensor, absl::string_view what) {
  if (tensor.num_elements() == 1) return tensor.data<std::string>()[0];
  return InvalidArgument("Input ", what, " must have one element, got shape ",
                         tensor.shape().ToString());
}

// Save and SaveSlices, which says of each tensor which part of another one it is.
class SaveKernel final : public OpKernel {
 public:
  explicit SaveKernel(KernelConstruction& c) : has_slices_(c.op() == "SaveSlices") {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string path, OneString(c.input(0), "filename"));
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, FilesOf(c));
    const int first = has_slices_ ? 3 : 2, count = c.num_inputs() - first;
    for (int i = 1; i < first; ++i) {
      if (c.input(i).rank() == 1 && c.input(i).dim(0) == count) continue;
      return InvalidArgument("Input ", c.call().schema().inputs[static_cast<size_t>(i)].name,
                             " should be a vector of ", count, " strings, got shape ",
                             c.input(i).shape().ToString());
    }
    std::vector<storage::SliceToSave> slices;
    for (int i = 0; i < count; ++i) {
      const Tensor& tensor = c.input(first + i);
      storage::SliceToSave saved{c.input(1).data<std::string>()[i], tensor.shape(),
                                 storage::TensorSlice::Full(tensor.rank()), &tensor};
      if (has_slices_) {
        WEFT_ASSIGN_OR_RETURN(const storage::ShapeAndSlice part,
                              storage::ShapeAndSlice::Parse(c.input(2).data<std::string>()[i]));
        if (!part.whole) {
          WEFT_ASSIGN_OR_RETURN(const storage::TensorSlice slice,
                                part.slice.Within(part.full_shape));
          if (!(slice.shape() == tensor.shape())) {
            return InvalidArgument("Slice in shape_and_slice specification does not match the ",
                                   "shape of the tensor to save: ", slice.shape().ToString(),
                                   ", tensor: ", tensor.shape().ToString());
          }
          saved.full_shape = part.full_shape;
          saved.slice = part.slice;
        }
      }
      slices.push_back(std::move(saved));
    }
    return storage::WriteSliceTable(*files, path, slices);
  }

 private:
  const bool has_slices_;
};

// Restore and RestoreSlice.
class RestoreKernel final : public OpKernel {
 public:
  explicit RestoreKernel(KernelConstruction& c) : has_slice_(c.op() == "RestoreSlice") {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::string pattern, OneString(c.input(0), "file_pattern"));
    WEFT_ASSIGN_OR_RETURN(const std::string name, OneString(c.input(1), "tensor_name"));
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, FilesOf(c));
    std::set<std::string> paths;
    WEFT_RETURN_IF_ERROR(weft::data::MatchFiles(*files, pattern, &paths));
    if (paths.empty()) return NotFound("Failed to find any matching files for ", pattern);
    WEFT_ASSIGN_OR_RETURN(
        const auto tables,
        storage::SliceTables::Open(*files, std::vector<std::string>(paths.begin(), paths.end())));
    WEFT_ASSIGN_OR_RETURN(const DType found, tables->TypeOf(name));
    if (found != c.output_dtype(0)) {
      return InvalidArgument("Expected to restore a tensor of type ", DTypeName(c.output_dtype(0)),
                             ", got a tensor of type ", DTypeName(found),
                             " instead: tensor_name = ", name);
    }
    storage::ShapeAndSlice part;
    if (has_slice_) {
      WEFT_ASSIGN_OR_RETURN(const std::string text, OneString(c.input(2), "shape_and_slice"));
      WEFT_ASSIGN_OR_RETURN(part, storage::ShapeAndSlice::Parse(text));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, tables->ShapeOf(name));
    if (!part.whole && !(part.full_shape == shape)) {
      return InvalidArgument("Tensor name \"", name, "\" has shape ", shape.ToString(), " in ",
                             pattern, ", the slice expects ", part.full_shape.ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor value,
                          part.whole ? tables->Read(name) : tables->ReadSlice(name, part.slice));
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }

 private:
  const bool has_slice_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Save")
                    .Doc("Saves tensors in one file of V1 checkpoint format.\n"
                         "Unimplemented for types that the format does not know.")
                    .Input("filename: string")
                    .Input("tensor_names: string")
                    .Input("data: T")
                    .Attr("T: list(type) >= 1")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SaveKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("SaveSlices")
                    .Doc("Saves tensors, or the parts of larger ones that they are, in one file of "
                         "V1 checkpoint format.\nshapes_and_slices: \"\", or \"sizes "
                         "start,length:...\" for a part.")
                    .Input("filename: string")
                    .Input("tensor_names: string")
                    .Input("shapes_and_slices: string")
                    .Input("data: T")
                    .Attr("T: list(type) >= 1")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SaveKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("Restore")
                    .Doc("The tensor of this name in files of V1 checkpoint format.\n"
                         "NotFound where it is in none; InvalidArgument where its type is another.")
                    .Input("file_pattern: string")
                    .Input("tensor_name: string")
                    .Output("tensor: dt")
                    .Attr("dt: type")
                    .Attr("preferred_shard: int = -1")
                    .Stateful()
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<RestoreKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("RestoreSlice")
                    .Doc("A part of the tensor of this name in files of V1 checkpoint format.\n"
                         "shape_and_slice: \"\" for all of it, or \"sizes start,length:...\".")
                    .Input("file_pattern: string")
                    .Input("tensor_name: string")
                    .Input("shape_and_slice: string")
                    .Output("tensor: dt")
                    .Attr("dt: type")
                    .Attr("preferred_shard: int = -1")
                    .Stateful()
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<RestoreKernel>(), KernelCost::kBlocking));
}

}  // namespace weft::ops::io::slice_tables
