// SPDX-License-Identifier: Apache-2.0
// Crossed features: each combination of the values that a row has in several columns.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/fingerprint.h"
#include "weft/ops/index_values.h"
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
    column.is_dense_ = true;
    for (int64_t row = 0; row < column.begins_.size(); ++row) {
      column.begins_[row] = row * values.dim(1);
    }
    return column;
  }

  static StatusOr<Column> Ragged(const Tensor& values, const Tensor& splits) {
    if (values.rank() != 1 || splits.rank() != 1 || splits.dim(0) < 1) {
      return InvalidArgument("tf.ragged.cross only supports inputs with rank=2.");
    }
    WEFT_ASSIGN_OR_RETURN(Column column, Column::Make(values, splits.dim(0) - 1));
    for (int64_t row = 0; row < column.begins_.size(); ++row) {
      column.begins_[row] = IndexAt(splits, row);
      const int64_t last = row == 0 ? 0 : column.begins_[row - 1];
      if (column.begins_[row] >= last && (row > 0 || column.begins_[row] == 0)) continue;
      return InvalidArgument("Invalid ragged splits: splits[", row, "] is ", column.begins_[row]);
    }
    if (column.begins_.back() == values.dim(0)) return column;
    return InvalidArgument("Invalid ragged splits: the last one is ", column.begins_.back(),
                           ", but there are ", values.dim(0), " values");
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
  // Of the bytes of a number, too; with a key that nobody can know if `strong`. TensorFlow takes
  // half of a number's bytes, and a dense one as it is.
  uint64_t KeyedHash(int64_t i, const std::array<uint64_t, 2>& key, bool strong) const {
    absl::string_view bytes;
    if (values_->dtype() == DType::kString) {
      bytes = values_->data<std::string>()[i];
    } else {
      if (is_dense_ && !strong) return static_cast<uint64_t>(values_->data<int64_t>()[i]);
      bytes = absl::string_view(reinterpret_cast<const char*>(values_->data<int64_t>() + i), 4);
    }
    return strong ? SipHash64(key, bytes) : Fingerprint64(bytes);
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
  bool is_dense_ = false;
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

  // A number for each combination; `first` begins it, or the hash of the first column.
  template <typename Hash>
  static void JoinHashes(const std::vector<Column>& columns, std::optional<uint64_t> first,
                         int64_t buckets, const Hash& hash_of, Tensor* values) {
    int64_t* to = values->data<int64_t>();
    const auto limit =
        static_cast<uint64_t>(buckets > 0 ? buckets : std::numeric_limits<int64_t>::max());
    ForEachCross(columns, [&](int64_t, int64_t, const std::vector<int64_t>& chosen) {
      size_t k = first ? 0 : 1;
      uint64_t hash = first ? *first : hash_of(columns[0], chosen[0]);
      for (; k < columns.size(); ++k) {
        hash = FingerprintCat64(hash, hash_of(columns[k], chosen[k]));
      }
      *to++ = static_cast<int64_t>(hash % limit);
    });
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
    const auto hash_of = [](const Column& column, int64_t i) { return column.Hash(i); };
    JoinHashes(columns, key, buckets, hash_of, values);
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

class HashedKernel final : public CrossKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("N"));
    return std::make_unique<HashedKernel>(count);
  }
  using CrossKernel::CrossKernel;

  Status Compute(KernelContext& c) override {
    const int own = c.num_inputs() - 3;
    const Tensor &buckets = c.input(own), &strong = c.input(own + 1), &salt = c.input(own + 2);
    if (buckets.rank() != 0 || strong.rank() != 0) {
      return InvalidArgument("num_buckets and strong_hash should be scalars, received shapes: ",
                             buckets.shape().ToString(), " and ", strong.shape().ToString());
    }
    if (salt.rank() != 1 || salt.dim(0) != 2) {
      return InvalidArgument("salt should be a vector of 2 elements, received shape: ",
                             salt.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(c, own));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, Allocate(c, columns));
    const std::array<uint64_t, 2> key = {static_cast<uint64_t>(salt.data<int64_t>()[0]),
                                         static_cast<uint64_t>(salt.data<int64_t>()[1])};
    const auto hash_of = [&](const Column& column, int64_t i) {
      return column.KeyedHash(i, key, strong.scalar<bool>());
    };
    JoinHashes(columns, std::nullopt, buckets.scalar<int64_t>(), hash_of, values);
    return absl::OkStatus();
  }
};

// Columns of all three kinds, in the order that the attribute says; the result is ragged.
class RaggedKernel final : public CrossKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const std::string order, c.Attr<std::string>("input_order"));
    WEFT_ASSIGN_OR_RETURN(const int64_t sparse, c.Attr<int64_t>("Nsparse"));
    WEFT_ASSIGN_OR_RETURN(const auto values, c.Attr<std::vector<DType>>("ragged_values_types"));
    WEFT_ASSIGN_OR_RETURN(const auto splits, c.Attr<std::vector<DType>>("ragged_splits_types"));
    WEFT_ASSIGN_OR_RETURN(const auto others, c.Attr<std::vector<DType>>("sparse_values_types"));
    WEFT_ASSIGN_OR_RETURN(const auto dense, c.Attr<std::vector<DType>>("dense_types"));
    if (values.size() != splits.size()) {
      return InvalidArgument("ragged values and splits must have the same length");
    }
    if (static_cast<size_t>(sparse) != others.size()) {
      return InvalidArgument("sparse indices and values must have the same length");
    }
    const auto count = [&](char kind) {
      return static_cast<size_t>(std::count(order.begin(), order.end(), kind));
    };
    if (order.size() != values.size() + others.size() + dense.size() ||
        count('R') != values.size() || count('S') != others.size() || count('D') != dense.size()) {
      return InvalidArgument("Invalid input_order \"", order, "\" for ", values.size(), " ragged, ",
                             others.size(), " sparse and ", dense.size(), " dense inputs");
    }
    return std::make_unique<RaggedKernel>(c, order, sparse, static_cast<int>(values.size()));
  }
  RaggedKernel(KernelConstruction& c, std::string order, int64_t num_sparse, int num_ragged)
      : CrossKernel(num_sparse),
        order_(std::move(order)),
        num_ragged_(num_ragged),
        hashed_(c.output_dtype(0) == DType::kInt64),
        buckets_(c.AttrOr<int64_t>("num_buckets", 0)),
        key_(static_cast<uint64_t>(c.AttrOr<int64_t>("hash_key", 0))) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Column> columns, OrderedColumns(c));
    const int64_t rows = columns.empty() ? 0 : columns[0].rows();
    for (const Column& column : columns) {
      if (column.rows() == rows) continue;
      return InvalidArgument("inputs must all have the same batch dimension size.");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * splits, c.AllocateOutput(1, Shape{rows + 1}));
    std::vector<int64_t> ends = {0};
    for (int64_t row = 0; row < rows; ++row) {
      int64_t count = 1;
      for (const Column& column : columns) {
        WEFT_ASSIGN_OR_RETURN(count, MultiplySizes(count, column.count(row)));
      }
      ends.push_back(ends.back() + count);
    }
    WEFT_RETURN_IF_ERROR(StoreIndices(ends, splits));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, Shape{ends.back()}));
    if (columns.empty()) return absl::OkStatus();
    if (hashed_) {
      JoinHashes(columns, key_, buckets_, values);
    } else {
      JoinTexts(columns, "_X_", values);
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<std::vector<Column>> OrderedColumns(const KernelContext& c) const {
    const int sparse = 2 * num_ragged_, dense = sparse + 3 * num_sparse_;
    int next_ragged = 0, next_sparse = 0, next_dense = 0;
    std::vector<Column> columns;
    for (const char kind : order_) {
      StatusOr<Column> column = InvalidArgument("Unexpected input_order value.");
      if (kind == 'R') {
        column = Column::Ragged(c.input(next_ragged), c.input(num_ragged_ + next_ragged));
        ++next_ragged;
      } else if (kind == 'S') {
        const int at = sparse + next_sparse++;
        column = Column::Sparse(
            {&c.input(at), &c.input(at + num_sparse_), &c.input(at + 2 * num_sparse_)});
      } else {
        column = Column::Dense(c.input(dense + next_dense++));
      }
      if (!column.ok()) return column.status();
      columns.push_back(*std::move(column));
    }
    return columns;
  }

  const std::string order_;
  const int num_ragged_;
  const bool hashed_;
  const int64_t buckets_;
  const uint64_t key_;
};

Status RaggedShape(ShapeContext& c) {
  c.set_output(0, PartialShape({-1}));
  c.set_output(1, PartialShape({-1}));
  return absl::OkStatus();
}

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

  OpSpec hashes = Signature("SparseCrossHashed",
                            "Each combination of the values that a row has in several columns, as "
                            "a hash below num_buckets, unless that is 0.\nColumns: sparse matrices "
                            "first, then dense ones. strong_hash takes salt as a key.");
  hashes.Input("num_buckets: int64").Input("strong_hash: bool").Input("salt: int64");
  hashes.Output("output_values: int64").Output("output_shape: int64");
  WithTypes(hashes).Kernel(MakeKernel<HashedKernel>());
  catalogue.Add(std::move(hashes));

  catalogue.Add(OpSpec("RaggedCross")
                    .Doc("Each combination of the values that a row has in several columns, as "
                         "texts joined by \"_X_\", or as hashes, in a ragged tensor.\ninput_order "
                         "has a letter for each column: R for ragged, S for sparse, D for dense.")
                    .Input("ragged_values: ragged_values_types")
                    .Input("ragged_row_splits: ragged_splits_types")
                    .Input("sparse_indices: Nsparse * int64")
                    .Input("sparse_values: sparse_values_types")
                    .Input("sparse_shape: Nsparse * int64")
                    .Input("dense_inputs: dense_types")
                    .Output("output_values: out_values_type")
                    .Output("output_row_splits: out_row_splits_type")
                    .Attr("Nsparse: int >= 0")
                    .Attr("input_order: string")
                    .Attr("hashed_output: bool")
                    .Attr("num_buckets: int >= 0")
                    .Attr("hash_key: int")
                    .Attr("ragged_values_types: list({int64, string}) >= 0")
                    .Attr("ragged_splits_types: list({int32, int64}) >= 0")
                    .Attr("sparse_values_types: list({int64, string}) >= 0")
                    .Attr("dense_types: list({int64, string}) >= 0")
                    .Attr("out_values_type: {int64, string}")
                    .Attr("out_row_splits_type: {int32, int64}")
                    .Shape(RaggedShape)
                    .NoGradient()
                    .Kernel(MakeKernel<RaggedKernel>()));
}

}  // namespace weft::ops::sparse::cross
