// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/io/feature_lists_kernel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"

#include "proto/tensorflow/example.pb.h"
#include "weft/ops/elements.h"
#include "weft/ops/io/feature_values.h"

namespace weft::ops::io {
namespace {

using tensorflow::Feature;
using tensorflow::FeatureList;

bool IsEmpty(const Feature& feature) { return feature.kind_case() == Feature::KIND_NOT_SET; }

class ListParser {
 public:
  ListParser(absl::Span<const std::string> names, bool is_batch)
      : names_(names), is_batch_(is_batch) {}

  Status Parse(absl::Span<const std::string> records) {
    records_.resize(records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      if (records_[i].ParseFromString(records[i])) continue;
      return InvalidArgument("Could not parse example input, value: '",
                             absl::CEscape(records[i].substr(0, 100)), "' (", NameOf(i), ")");
    }
    return absl::OkStatus();
  }

  StatusOr<ParsedLists> Collect(const ListSpec& spec) const {
    ParsedLists parsed;
    for (const SparseList& list : spec.sparse) WEFT_RETURN_IF_ERROR(AddSparse(list, &parsed));
    for (const DenseList& list : spec.dense) WEFT_RETURN_IF_ERROR(AddDense(list, &parsed));
    for (const RaggedList& list : spec.ragged) WEFT_RETURN_IF_ERROR(AddRagged(list, &parsed));
    return parsed;
  }

 private:
  using Lists = std::vector<const FeatureList*>;  // of each record, null where it is missing

  int64_t batch() const { return static_cast<int64_t>(records_.size()); }
  std::string NameOf(size_t record) const {
    return absl::StrCat("Name: ", record < names_.size() ? names_[record] : "<unknown>");
  }

  StatusOr<Lists> FindAll(const std::string& key, DType dtype) const {
    Lists all;
    for (size_t i = 0; i < records_.size(); ++i) {
      const auto& lists = records_[i].feature_lists().feature_list();
      const auto found = lists.find(key);
      all.push_back(found == lists.end() ? nullptr : &found->second);
      if (all.back() == nullptr) continue;
      for (const Feature& feature : all.back()->feature()) {
        if (IsEmpty(feature) || TypeOf(feature) == dtype) continue;
        return InvalidArgument(NameOf(i), ", Feature list: ", key,
                               ".  Data types don't match. Expected type: ", DTypeName(dtype),
                               ", got ", DTypeName(TypeOf(feature)));
      }
    }
    return all;
  }

  static int64_t StepsOf(const FeatureList* list) {
    return list == nullptr ? 0 : list->feature_size();
  }

  // The values of all records and steps behind each other.
  static StatusOr<Tensor> Join(const Lists& lists, DType dtype) {
    int64_t total = 0;
    for (const FeatureList* list : lists) {
      for (int t = 0; t < StepsOf(list); ++t) total += CountOf(list->feature(t));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(dtype, Shape{total}));
    int64_t at = 0;
    for (const FeatureList* list : lists) {
      for (int t = 0; t < StepsOf(list); ++t) {
        CopyValues(list->feature(t), &values, at);
        at += CountOf(list->feature(t));
      }
    }
    return values;
  }

  Status AddSparse(const SparseList& wanted, ParsedLists* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const Lists lists, FindAll(wanted.key, wanted.dtype));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Join(lists, wanted.dtype));
    std::vector<int64_t> indices;
    int64_t steps = 0, longest = 0;
    for (size_t row = 0; row < lists.size(); ++row) {
      steps = std::max(steps, StepsOf(lists[row]));
      for (int t = 0; t < StepsOf(lists[row]); ++t) {
        const int64_t count = CountOf(lists[row]->feature(t));
        longest = std::max(longest, count);
        for (int64_t i = 0; i < count; ++i) {
          if (is_batch_) indices.push_back(static_cast<int64_t>(row));
          indices.push_back(t);
          indices.push_back(i);
        }
      }
    }
    const int64_t sizes[] = {batch(), steps, longest};
    const auto shape = absl::MakeConstSpan(sizes).subspan(is_batch_ ? 0 : 1);
    const auto rank = static_cast<int64_t>(shape.size());
    parsed->sparse_indices.push_back(
        Tensor::FromSpan<int64_t>(Shape{values.dim(0), rank}, indices));
    parsed->sparse_shapes.push_back(Tensor::FromSpan<int64_t>(Shape{rank}, shape));
    parsed->sparse_values.push_back(std::move(values));
    return absl::OkStatus();
  }

  Status CheckDense(const DenseList& wanted, const Lists& lists) const {
    for (size_t row = 0; row < lists.size(); ++row) {
      if (lists[row] == nullptr) {
        if (wanted.may_be_missing) continue;
        return InvalidArgument(
            NameOf(row), ", Feature list '", wanted.key,
            "' is required but could not be found.  Did you mean to include it in "
            "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?");
      }
      for (int t = 0; t < StepsOf(lists[row]); ++t) {
        const Feature& feature = lists[row]->feature(t);
        if (!IsEmpty(feature) && CountOf(feature) == wanted.shape.num_elements()) continue;
        return InvalidArgument(
            NameOf(row), ", Feature list: ", wanted.key, ", Index: ", t, ".  Number of ",
            DTypeName(wanted.dtype),
            " values != expected.  values size: ", IsEmpty(feature) ? 0 : CountOf(feature),
            " but output shape: ", wanted.shape.ToString());
      }
    }
    return absl::OkStatus();
  }

  Status AddDense(const DenseList& wanted, ParsedLists* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const Lists lists, FindAll(wanted.key, wanted.dtype));
    WEFT_RETURN_IF_ERROR(CheckDense(wanted, lists));
    std::vector<int64_t> lengths;
    for (const FeatureList* list : lists) lengths.push_back(StepsOf(list));
    const int64_t steps = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    Dims sizes;
    if (is_batch_) sizes.push_back(batch());
    sizes.push_back(steps);
    sizes.insert(sizes.end(), wanted.shape.dims().begin(), wanted.shape.dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor out, Tensor::Zeros(wanted.dtype, shape));
    const int64_t width = wanted.shape.num_elements();
    for (size_t row = 0; row < lists.size(); ++row) {
      for (int t = 0; t < StepsOf(lists[row]); ++t) {
        CopyValues(lists[row]->feature(t), &out, (static_cast<int64_t>(row) * steps + t) * width);
      }
    }
    parsed->dense.push_back(std::move(out));
    parsed->dense_lengths.push_back(
        Tensor::FromSpan<int64_t>(is_batch_ ? Shape{batch()} : Shape(), lengths));
    return absl::OkStatus();
  }

  static StatusOr<Tensor> SplitsTensor(const std::vector<int64_t>& splits, DType dtype) {
    const Shape shape{static_cast<int64_t>(splits.size())};
    if (dtype == DType::kInt64) return Tensor::FromSpan<int64_t>(shape, splits);
    if (!splits.empty() && splits.back() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("There are too many values for splits of type int32: ", splits.back());
    }
    return Tensor::FromSpan<int32_t>(shape, std::vector<int32_t>(splits.begin(), splits.end()));
  }

  Status AddRagged(const RaggedList& wanted, ParsedLists* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const Lists lists, FindAll(wanted.key, wanted.dtype));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Join(lists, wanted.dtype));
    std::vector<int64_t> inner = {0}, outer = {0};
    for (const FeatureList* list : lists) {
      for (int t = 0; t < StepsOf(list); ++t) {
        inner.push_back(inner.back() + CountOf(list->feature(t)));
      }
      outer.push_back(static_cast<int64_t>(inner.size()) - 1);
    }
    if (!is_batch_) outer.clear();  // a record alone needs none
    WEFT_ASSIGN_OR_RETURN(Tensor outer_splits, SplitsTensor(outer, wanted.splits));
    WEFT_ASSIGN_OR_RETURN(Tensor inner_splits, SplitsTensor(inner, wanted.splits));
    parsed->ragged_values.push_back(std::move(values));
    parsed->ragged_outer_splits.push_back(std::move(outer_splits));
    parsed->ragged_inner_splits.push_back(std::move(inner_splits));
    return absl::OkStatus();
  }

  const absl::Span<const std::string> names_;
  const bool is_batch_;
  std::vector<tensorflow::SequenceExample> records_;
};

}  // namespace

StatusOr<ParsedLists> ParseFeatureLists(const ListSpec& spec, absl::Span<const std::string> records,
                                        absl::Span<const std::string> names, bool is_batch) {
  ListParser parser(names, is_batch);
  WEFT_RETURN_IF_ERROR(parser.Parse(records));
  return parser.Collect(spec);
}

}  // namespace weft::ops::io
