// SPDX-License-Identifier: Apache-2.0
// Checkpoints of format V1: tables whose first entry says which parts of which tensors there are.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/table.h"
#include "weft/storage/tensor_slice.h"
#include "weft/tensor/tensor.h"

namespace weft::storage {

// One tensor, or a part of one, as a V1 checkpoint takes it. Borrows the tensor.
struct SliceToSave {
  std::string name;
  Shape full_shape;
  TensorSlice slice;
  const Tensor* tensor = nullptr;
};

// Writes a file that appears whole or not at all. InvalidArgument for a name that comes twice with
// one slice, Unimplemented for types that the format does not know.
Status WriteSliceTable(FileSystem& files, const std::string& path,
                       absl::Span<const SliceToSave> slices);

// Reads the tensors of one or several such files, which may hold parts of one tensor. Thread-safe.
// DataLoss for damage, naming the file.
class SliceTables {
 public:
  static StatusOr<std::unique_ptr<SliceTables>> Open(FileSystem& files,
                                                     absl::Span<const std::string> paths);
  // NotFound without a tensor of this name; InvalidArgument where parts of it are missing.
  StatusOr<DType> TypeOf(const std::string& name) const;
  StatusOr<Shape> ShapeOf(const std::string& name) const;
  StatusOr<Tensor> Read(const std::string& name) const;
  StatusOr<Tensor> ReadSlice(const std::string& name, const TensorSlice& slice) const;

 private:
  struct Part {
    TensorSlice slice;
    size_t table = 0;
  };
  struct Entry {
    DType dtype = DType::kInvalid;
    Shape shape;
    std::vector<Part> parts;
  };
  SliceTables() = default;
  Status Add(FileSystem& files, const std::string& path);
  StatusOr<const Entry*> Find(const std::string& name) const;
  StatusOr<Tensor> LoadPart(const std::string& name, const Entry& entry, const Part& part) const;

  std::vector<std::unique_ptr<Table>> tables_;
  std::map<std::string, Entry> entries_;
};

}  // namespace weft::storage
