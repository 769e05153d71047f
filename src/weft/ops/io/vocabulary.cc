// SPDX-License-Identifier: Apache-2.0
// Warm starts: where the words of a new vocabulary stood in the old one, and matrices whose rows
// and columns are put in the new order.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "weft/kernel/op_spec.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::ops::io::vocabulary {
namespace {

StatusOr<std::string> StringScalar(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return c.input(i).scalar<std::string>();
  return InvalidArgument(c.call().schema().inputs[static_cast<size_t>(i)].name,
                         " should be a single string, but got shape ",
                         c.input(i).shape().ToString());
}

StatusOr<FileSystem*> FilesOf(const KernelContext& c) {
  if (c.environment().files != nullptr) return c.environment().files;
  return FailedPrecondition("This session has no file system");
}

// The words of a file, one a line.
StatusOr<std::vector<std::string>> Words(const KernelContext& c, int input) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, StringScalar(c, input));
  if (path.empty()) return InvalidArgument("The name of a vocabulary cannot be empty.");
  WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(*files, path));
  std::vector<std::string> words = absl::StrSplit(text, '\n');
  if (words.back().empty()) words.pop_back();
  return words;
}

class RemapKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t offset, c.Attr<int64_t>("new_vocab_offset"));
    WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("num_new_vocab"));
    return std::make_unique<RemapKernel>(offset, count, c.AttrOr<int64_t>("old_vocab_size", -1));
  }
  RemapKernel(int64_t offset, int64_t count, int64_t old_size)
      : offset_(offset), count_(count), old_size_(old_size) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> words, Words(c, 0));
    WEFT_ASSIGN_OR_RETURN(std::vector<std::string> old_words, Words(c, 1));
    const auto old_count = static_cast<int64_t>(old_words.size());
    if (old_size_ > old_count) {
      return InvalidArgument("Invalid vocab_size in ", c.input(1).scalar<std::string>(),
                             ": expected ", old_size_, " but got ", old_count);
    }
    if (old_size_ >= 0) old_words.resize(static_cast<size_t>(old_size_));
    const auto have = static_cast<int64_t>(words.size());
    if (offset_ > have || count_ > have - offset_) {
      return InvalidArgument("There are ", have, " words in ", c.input(0).scalar<std::string>(),
                             ", but ", count_, " from number ", offset_, " on are wanted");
    }
    absl::flat_hash_map<absl::string_view, int64_t> places;
    for (size_t i = 0; i < old_words.size(); ++i) {
      if (places.try_emplace(old_words[i], static_cast<int64_t>(i)).second) continue;
      return FailedPrecondition(
          "HashTable has different value for same key. The old vocabulary "
          "has the word '",
          old_words[i], "' twice");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * remapping, c.AllocateOutput(0, Shape{count_}));
    int32_t present = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const auto found = places.find(words[static_cast<size_t>(offset_ + i)]);
      remapping->data<int64_t>()[i] = found == places.end() ? -1 : found->second;
      present += found == places.end() ? 0 : 1;
    }
    c.SetOutput(1, Tensor::Scalar(present));
    return absl::OkStatus();
  }

 private:
  const int64_t offset_;
  const int64_t count_;
  const int64_t old_size_;
};

class LoadKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t rows, c.Attr<int64_t>("num_rows"));
    WEFT_ASSIGN_OR_RETURN(const int64_t columns, c.Attr<int64_t>("num_cols"));
    return std::make_unique<LoadKernel>(rows, columns);
  }
  LoadKernel(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(CheckPlaces(c.input(2), rows_, "row_remapping"));
    const bool remaps_columns = c.input(3).num_elements() > 0;
    if (remaps_columns) WEFT_RETURN_IF_ERROR(CheckPlaces(c.input(3), columns_, "col_remapping"));
    WEFT_ASSIGN_OR_RETURN(const std::string prefix, StringScalar(c, 0));
    WEFT_ASSIGN_OR_RETURN(const std::string name, StringScalar(c, 1));
    WEFT_ASSIGN_OR_RETURN(FileSystem * files, FilesOf(c));
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<storage::BundleReader> reader,
                          storage::BundleReader::Open(*files, prefix));
    WEFT_ASSIGN_OR_RETURN(const storage::BundleTensor found, reader->Describe(name));
    if (found.dtype != DType::kFloat) {
      return InvalidArgument("Tensor ", name, " has invalid type ", DTypeName(found.dtype),
                             " instead of expected type float");
    }
    if (!found.shape.IsMatrix()) {
      return InvalidArgument("Tensor ", name, " should be 2-D, got shape ", found.shape.ToString());
    }
    if (!remaps_columns && found.shape.dim(1) != columns_) {
      return InvalidArgument("Tensor ", name, " has shape ", found.shape.ToString(),
                             ", where the size of its 2nd dimension is ", found.shape.dim(1),
                             " instead of being equal to num_cols=", columns_);
    }
    WEFT_ASSIGN_OR_RETURN(const Tensor old, reader->Read(name));
    return Fill(c, old);
  }

 private:
  static Status CheckPlaces(const Tensor& places, int64_t count, const char* what) {
    if (places.rank() != 1 || places.dim(0) != count) {
      return InvalidArgument("Size of ", what, " is ", places.num_elements(),
                             " instead of being equal to ", count);
    }
    absl::flat_hash_map<int64_t, int64_t> seen;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = places.data<int64_t>()[i];
      if (place < 0) continue;
      const auto [first, is_new] = seen.try_emplace(place, i);
      if (is_new) continue;
      return Unimplemented("Old ID ", place, " is mapped to both new ID ", first->second, " and ",
                           i, ", which is not currently supported.");
    }
    return absl::OkStatus();
  }

  // The old element of each place, the next of the initializing values where there is none.
  Status Fill(KernelContext& c, const Tensor& old) const {
    const absl::Span<const int64_t> rows = c.input(2).span<int64_t>();
    const absl::Span<const int64_t> columns = c.input(3).span<int64_t>();
    const absl::Span<const float> initial = c.input(4).span<float>();
    WEFT_RETURN_IF_ERROR(MultiplySizes(rows_, columns_).status());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{rows_, columns_}));
    float* to = out->data<float>();
    size_t used = 0;
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t row = rows[static_cast<size_t>(r)];
      if (row >= old.dim(0)) {
        return InvalidArgument("row_remapping names row ", row, " of ", old.dim(0));
      }
      for (int64_t k = 0; k < columns_; ++k, ++to) {
        const int64_t column = columns.empty() ? k : columns[static_cast<size_t>(k)];
        if (column >= old.dim(1)) {
          return InvalidArgument("col_remapping names column ", column, " of ", old.dim(1));
        }
        if (row >= 0 && column >= 0) {
          *to = old.data<float>()[row * old.dim(1) + column];
        } else if (used < initial.size()) {
          *to = initial[used++];
        } else {
          return InvalidArgument("Tried to use more than the ", initial.size(),
                                 " initializing values that were given");
        }
      }
    }
    if (used == initial.size()) return absl::OkStatus();
    return InvalidArgument("Tried to use ", used, " initializing values, but ", initial.size(),
                           " were given");
  }

  const int64_t rows_;
  const int64_t columns_;
};

Status RemapShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("num_new_vocab"));
  c.set_output(0, Shape{count});
  c.set_output(1, Shape());
  return absl::OkStatus();
}

Status LoadShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t rows, c.Attr<int64_t>("num_rows"));
  WEFT_ASSIGN_OR_RETURN(const int64_t columns, c.Attr<int64_t>("num_cols"));
  c.set_output(0, PartialShape({rows, columns}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("GenerateVocabRemapping")
                    .Doc("For num_new_vocab words of a new vocabulary, one a line, from line "
                         "new_vocab_offset on: the line that each has in the old one, or -1; and "
                         "how many have one.")
                    .Input("new_vocab_file: string")
                    .Input("old_vocab_file: string")
                    .Output("remapping: int64")
                    .Output("num_present: int32")
                    .Attr("new_vocab_offset: int >= 0")
                    .Attr("num_new_vocab: int >= 0")
                    .Attr("old_vocab_size: int >= -1 = -1")
                    .Shape(RemapShape)
                    .NoGradient()
                    .Kernel(MakeKernel<RemapKernel>(), KernelCost::kBlocking));
  catalogue.Add(OpSpec("LoadAndRemapMatrix")
                    .Doc("A matrix of a checkpoint with rows and columns in a new order: "
                         "row_remapping and col_remapping name the old ones (no columns: all as "
                         "they are), -1 takes the next of initializing_values.")
                    .Input("ckpt_path: string")
                    .Input("old_tensor_name: string")
                    .Input("row_remapping: int64")
                    .Input("col_remapping: int64")
                    .Input("initializing_values: float")
                    .Output("output_matrix: float")
                    .Attr("num_rows: int >= 0")
                    .Attr("num_cols: int >= 1")
                    .Attr("max_rows_in_memory: int = -1")
                    .Stateful()
                    .Shape(LoadShape)
                    .NoGradient()
                    .Kernel(MakeKernel<LoadKernel>(), KernelCost::kBlocking));
}

}  // namespace weft::ops::io::vocabulary
