// SPDX-License-Identifier: Apache-2.0
// Crossed features: each combination of the values that a row has in several columns.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/fingerprint.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::cross {
namespace {

// One column: the values of each row, of a sparse matrix or of a dense one.
class Column {
 public:
  static StatusOr<Column> Sparse(const SparseInput& input) {
    WEFT_RETURN_IF_ERROR(input.Check());
    if (input.rank() != 2) {
      return InvalidArgument("Expected a sparse matrix, but its shape has ", input.rank(),
                             " sizes");
    }
    WEFT_ASSIGN_OR_RETURN(Column column, Column::Make(*input.values, input.size(0)));
    for (int64_t i = 0; i < input.count(); ++i) {
      const int64_t row = input.position(i)[0];
      if (row < 0 || row >= input.size(0)) {
        return InvalidArgument("Row ", row, " of indices[", i, "] is not in [0, ", input.size(0),
                               ")");
      }
      column.begins_[row + 1] = i + 1;
    }
    // Entries come in the order of their rows.
    for (int64_t row = 1; row < column.begins_.size(); ++row) {
      column.begins_[row] = std::max(column.begins_[row], column.begins_[row - 1]);
    }
    return column;
  }
  static StatusOr<Column> Dense(const Tensor& values) {
    if (values.rank() != 2) {
      return InvalidArgument("Dense inputs should be a matrix but received shape ",
                             values.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Column column, Column::Make(values, values.dim(0)));
    for (int64_t row = 0; row < column.begins_.size(); ++row) {
      column.begins_[row] = row * values.dim(1);
    }
    return column;
  }

  int64_t rows() const { return begins_.size() - 1; }
  int64_t begin(int64_t row) const { return begins_[row]; }
  int64_t count(int64_t row) const { return begins_[row + 1] - begin(row); }
  std::string Text(int64_t i) const {
    if (values_->dtype() == DType::kString) return values_->data<std::string>()[i];
    return absl::StrCat(values_->data<int64_t>()[i]);
  }
  uint64_t Hash(int64_t i) const {
    if (values_->dtype() == DType::kString) return Fingerprint64(values_->data<std::string>()[i]);
    return static_cast<uint64_t>(values_->data<int64_t>()[i]);
  }

 private:
  static StatusOr<Column> Make(const Tensor& values, int64_t rows) {
    WEFT_RETURN_IF_ERROR(CheckRoomFor(rows, sizeof(int64_t), "rows"));
    WEFT_ASSIGN_OR_RETURN(Scratch<int64_t> begins, Scratch<int64_t>::Make(rows + 1));
    return Column(values, std::move(begins));
  }
  Column(const Tensor& values, Scratch<int64_t> begins)
      : values_(&values), begins_(std::move(begins)) {}
  const Tensor* values_;
  Scratch<int64_t> begins_;  // of each row in the values; one more for the end
};

// Calls give(row, n, chosen) for the n-th combination of each row: one value of each column, the
// last column's changing fastest.
template <typename Give>
void ForEachCross(const std::vector<Column>& columns, const Give& give) {
  std::vector<int64_t> chosen(columns.size());
  for (int64_t row = 0; row < columns[0].rows(); ++row) {
    bool more = true;
    for (size_t k = 0; k < columns.size(); ++k) {
      chosen[k] = columns[k].begin(row);
      more = more && columns[k].count(row) > 0;
    }
    for (int64_t n = 0; more; ++n) {
      give(row, n, chosen);
      size_t k = columns.size();
      while (k > 0 && ++chosen[k - 1] == columns[k - 1].begin(row) + columns[k - 1].count(row)) {
        --k;
        chosen[k] = columns[k].begin(row);
      }
      more = k > 0;
    }
  }
}

class CrossKernel : public OpKernel {
 public:
  explicit CrossKernel(int64_t num_sparse) : num_sparse_(static_cast<int>(num_sparse)) {}

 protected:
  // Sparse columns come first, then the dense ones up to input `end`.
  StatusOr<std::vector<Column>> Columns(const KernelContext& c, int end) const {
    std::vector<Column> columns;
    for (int k = 0; k < num_sparse_; ++k) {
      WEFT_ASSIGN_OR_RETURN(Column column, Column::Sparse({&c.input(k), &c.input(num_sparse_ + k),
                                                           &c.input(2 * num_sparse_ + k)}));
      columns.push_back(std::move(column));
    }
    for (int i = 3 * num_sparse_; i < end; ++i) {
      WEFT_ASSIGN_OR_RETURN(Column column, Column::Dense(c.input(i)));
      columns.push_back(std::move(column));
    }
    if (columns.empty()) return InvalidArgument("There are no columns to cross");
    for (const Column& column : columns) {
      if (column.rows() == columns[0].rows()) continue;
      return InvalidArgument("Expected batch size ", columns[0].rows(), " but got ", column.rows());
    }
    return columns;
  }

  // Positions and shape; gives where the values go.
  static StatusOr<Tensor*> Allocate(KernelContext& c, const std::vector<Column>& columns) {
    int64_t total = 0, widest = 0;
    for (int64_t row = 0; row < columns[0].rows(); ++row) {
      int64_t count = 1;
      for (const Column& column : columns) {
        WEFT_ASSIGN_OR_RETURN(count, MultiplySizes(count, column.count(row)));
      }
      total += count;
      widest = std::max(widest, count);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{total, 2}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{total}));
    const int64_t sizes[] = {columns[0].rows(), widest};
    c.SetOutput(2, Tensor::FromSpan<int64_t>(Shape{2}, sizes));
    int64_t* at = indices->data<int64_t>();
    ForEachCross(columns, [&](int64_t row, int64_t n, const std::vector<int64_t>&) {
      *at++ = row;
      *at++ = n;
    });
    return values;
  }

  static void JoinTexts(const std::vector<Column>& columns, const std::string& separator,
                        Tensor* values) {
    std::string* to = values->data<std::string>();
    ForEachCross(columns, [&](int64_t, int64_t, const std::vector<int64_t>& chosen) {
      std::vector<std::string> texts;
      for (size_t k = 0; k < columns.size(); ++k) texts.push_back(columns[k].Text(chosen[k]));
      *to++ = absl::StrJoin(texts, separator);
    });
  }

  // Numbers below `buckets`, or merely not negative if that is 0.
  static void JoinHashes(const std::vector<Column>& columns, uint64_t key, int64_t buckets,
                         Tensor* values) {
    int64_t* to = values->data<int64_t>();
    const auto limit =
        static_cast<uint64_t>(buckets > 0 ? buckets : std::numeric_limits<int64_t>::max());
    ForEachCross(columns, [&](int64_t, int64_t, const std::vector<int64_t>& chosen) {
      uint64_t hash = key;
      for (size_t k = 0; k < columns.size(); ++k) {
        hash = FingerprintCat64(hash, columns[k].Hash(chosen[k]));
      }
      *to++ = static_cast<int64_t>(hash % limit);
    });
  }

  const int num_sparse_;
};

class CrossV1Kernel final : public CrossKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("N"));
    WEFT_ASSIGN_OR_RETURN(const bool hashed, c.Attr<bool>("hashed_output"));
    WEFT_ASSIGN_OR_RETURN(const int64_t buckets, c.Attr<int64_t>("num_buckets"));
    WEFT_ASSIGN_OR_RETURN(const int64_t key, c.Attr<int64_t>("hash_key"));
    WEFT_ASSIGN_OR_RETURN(const DType out, c.Attr<DType>("out_type"));
    if (hashed != (out == DType::kInt64)) {
      return InvalidArgument("hashed_output = ", hashed ? "true" : "false",
                             " does not go with out_type ", DTypeName(out));
    }
    return std::make_unique<CrossV1Kernel>(count, hashed, buckets, static_cast<uint64_t>(key));
  }
  CrossV1Kernel(int64_t num_sparse, bool hashed, int64_t buckets, uint64_t key)
      : CrossKernel(num_sparse), hashed_(hashed), buckets_(buckets), key_(key) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(c, c.num_inputs()));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, Allocate(c, columns));
    if (!hashed_) {
      JoinTexts(columns, "_X_", values);
      return absl::OkStatus();
    }
    JoinHashes(columns, key_, buckets_, values);
    return absl::OkStatus();
  }

 private:
  const bool hashed_;
  const int64_t buckets_;
  const uint64_t key_;
};

class CrossV2Kernel final : public CrossKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("N"));
    return std::make_unique<CrossV2Kernel>(count);
  }
  using CrossKernel::CrossKernel;

  Status Compute(KernelContext& c) override {
    const Tensor& separator = c.input(c.num_inputs() - 1);
    if (separator.rank() != 0) {
      return InvalidArgument("Input separator should be a scalar. Received: ",
                             separator.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(c, c.num_inputs() - 1));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, Allocate(c, columns));
    JoinTexts(columns, separator.scalar<std::string>(), values);
    return absl::OkStatus();
  }
};

Status CrossShape(ShapeContext& c) {
  c.set_output(0, PartialShape({-1, 2}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({2}));
  return absl::OkStatus();
}

OpSpec Signature(const char* name, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation)
      .Input("indices: N * int64")
      .Input("values: sparse_types")
      .Input("shapes: N * int64")
      .Input("dense_inputs: dense_types")
      .Output("output_indices: int64")
      .Attr("N: int >= 0")
      .Shape(CrossShape)
      .NoGradient();
  return spec;
}

OpSpec& WithTypes(OpSpec& spec) {
  return spec.Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec first = Signature(
      "SparseCross",
      "Each combination of the values that a row has in several columns, as texts joined by "
      "\"_X_\", or as hashes.\nColumns: sparse matrices first, then dense ones, all with as many "
      "rows; the output is a sparse matrix with one combination an entry. With hashed_output a "
      "hash "
      "below num_buckets, unless that is 0.");
  first.Output("output_values: out_type")
      .Output("output_shape: int64")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int");
  WithTypes(first)
      .Attr("out_type: {int64, string}")
      .Attr("internal_type: {int64, string}")
      .Kernel(MakeKernel<CrossV1Kernel>());
  catalogue.Add(std::move(first));

  OpSpec texts = Signature("SparseCrossV2",
                           "Each combination of the values that a row has in several columns, as "
                           "texts joined by `sep`.\nColumns: sparse matrices first, then dense "
                           "ones, all with as many rows.");
  texts.Input("sep: string").Output("output_values: string").Output("output_shape: int64");
  WithTypes(texts).Kernel(MakeKernel<CrossV2Kernel>());
  catalogue.Add(std::move(texts));
}

}  // namespace weft::ops::sparse::cross
