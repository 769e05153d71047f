// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/io/parse_example_kernel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"

#include "proto/tensorflow/example.pb.h"
#include "weft/ops/elements.h"
#include "weft/ops/io/feature_values.h"

namespace weft::ops::io {
namespace {

using tensorflow::Feature;

// Null if the record has no such feature, or one without values of any type.
const Feature* Find(const tensorflow::Example& record, const std::string& key) {
  const auto& features = record.features().feature();
  const auto found = features.find(key);
  if (found == features.end() || found->second.kind_case() == Feature::KIND_NOT_SET) return nullptr;
  return &found->second;
}

class Parser {
 public:
  Parser(const ExampleSpec& spec, absl::Span<const std::string> names, bool is_batch)
      : spec_(spec), names_(names), is_batch_(is_batch) {}

  Status Parse(absl::Span<const std::string> records) {
    records_.resize(records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      if (records_[i].ParseFromString(records[i])) continue;
      return InvalidArgument("Could not parse example input, value: '",
                             absl::CEscape(records[i].substr(0, 100)), "' (", NameOf(i), ")");
    }
    return absl::OkStatus();
  }

  StatusOr<ParsedExamples> Collect() const {
    ParsedExamples parsed;
    for (const SparseFeature& feature : spec_.sparse) {
      WEFT_RETURN_IF_ERROR(AddSparse(feature, &parsed));
    }
    for (const DenseFeature& feature : spec_.dense) {
      WEFT_RETURN_IF_ERROR(AddDense(feature, &parsed));
    }
    for (const RaggedFeature& feature : spec_.ragged) {
      WEFT_RETURN_IF_ERROR(AddRagged(feature, &parsed));
    }
    return parsed;
  }

 private:
  int64_t batch() const { return static_cast<int64_t>(records_.size()); }
  std::string NameOf(size_t record) const {
    return absl::StrCat("Name: ", record < names_.size() ? names_[record] : "<unknown>");
  }

  // The feature of each record, null where it is missing.
  StatusOr<std::vector<const Feature*>> FindAll(const std::string& key, DType dtype) const {
    std::vector<const Feature*> all;
    for (size_t i = 0; i < records_.size(); ++i) {
      all.push_back(Find(records_[i], key));
      if (all.back() == nullptr || TypeOf(*all.back()) == dtype) continue;
      return InvalidArgument(
          NameOf(i), ", Feature: ", key,
          ".  Data types don't match. Data type: ", DTypeName(TypeOf(*all.back())),
          " but expected type: ", DTypeName(dtype));
    }
    return all;
  }

  // The values of all records behind each other.
  static StatusOr<Tensor> Join(const std::vector<const Feature*>& features, DType dtype) {
    int64_t total = 0;
    for (const Feature* feature : features) total += feature != nullptr ? CountOf(*feature) : 0;
    WEFT_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(dtype, Shape{total}));
    int64_t at = 0;
    for (const Feature* feature : features) {
      if (feature == nullptr) continue;
      CopyValues(*feature, &values, at);
      at += CountOf(*feature);
    }
    return values;
  }

  Status AddSparse(const SparseFeature& wanted, ParsedExamples* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const std::vector<const Feature*> features,
                          FindAll(wanted.key, wanted.dtype));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Join(features, wanted.dtype));
    std::vector<int64_t> indices;
    int64_t longest = 0;
    for (size_t row = 0; row < features.size(); ++row) {
      const int64_t count = features[row] != nullptr ? CountOf(*features[row]) : 0;
      longest = std::max(longest, count);
      for (int64_t i = 0; i < count; ++i) {
        if (is_batch_) indices.push_back(static_cast<int64_t>(row));
        indices.push_back(i);
      }
    }
    const int64_t sizes[] = {batch(), longest};
    const auto shape = absl::MakeConstSpan(sizes).subspan(is_batch_ ? 0 : 1);
    const auto rank = static_cast<int64_t>(shape.size());
    parsed->sparse_indices.push_back(
        Tensor::FromSpan<int64_t>(Shape{values.dim(0), rank}, indices));
    parsed->sparse_shapes.push_back(Tensor::FromSpan<int64_t>(Shape{rank}, shape));
    parsed->sparse_values.push_back(std::move(values));
    return absl::OkStatus();
  }

  // Elements of one record, or of one step of it where the first size is open.
  static int64_t ElementsOf(const DenseFeature& wanted) {
    int64_t elements = 1;
    for (int d = wanted.is_variable() ? 1 : 0; d < wanted.shape.rank(); ++d) {
      elements *= wanted.shape.dim(d);
    }
    return elements;
  }

  Status CheckCount(const DenseFeature& wanted, size_t record, int64_t count) const {
    const int64_t elements = ElementsOf(wanted);
    if (wanted.is_variable() ? elements > 0 && count % elements == 0 : count == elements) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        NameOf(record), ", Key: ", wanted.key, ", Index: ", record, ".  Number of ",
        wanted.dtype == DType::kString ? absl::string_view("bytes") : DTypeName(wanted.dtype),
        " values ", wanted.is_variable() ? "is not a multiple of stride length" : "!= expected",
        ".  values size: ", count, " but output shape: ", wanted.shape.ToString());
  }

  Status AddDense(const DenseFeature& wanted, ParsedExamples* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const std::vector<const Feature*> features,
                          FindAll(wanted.key, wanted.dtype));
    const int64_t elements = ElementsOf(wanted);
    int64_t steps = 1;
    if (wanted.is_variable()) steps = 0;
    for (size_t row = 0; row < features.size(); ++row) {
      if (features[row] != nullptr) {
        const int64_t count = CountOf(*features[row]);
        WEFT_RETURN_IF_ERROR(CheckCount(wanted, row, count));
        if (wanted.is_variable()) steps = std::max(steps, count / elements);
      } else if (!wanted.is_variable() && wanted.fallback.num_elements() == 0 && elements > 0) {
        return InvalidArgument(NameOf(row), ", Feature: ", wanted.key,
                               " (data type: ", DTypeName(wanted.dtype),
                               ") is required but could not be found.");
      }
    }
    Dims sizes;
    if (is_batch_) sizes.push_back(batch());
    for (int d = 0; d < wanted.shape.rank(); ++d) {
      sizes.push_back(d == 0 && wanted.is_variable() ? steps : wanted.shape.dim(d));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(wanted.dtype, shape));
    for (size_t row = 0; row < features.size(); ++row) {
      Fill(wanted, features[row], steps * elements, static_cast<int64_t>(row), &out);
    }
    parsed->dense.push_back(std::move(out));
    return absl::OkStatus();
  }

  // One record's place of `size` elements: its values, then what stands for those it has not.
  static void Fill(const DenseFeature& wanted, const Feature* feature, int64_t size, int64_t row,
                   Tensor* out) {
    int64_t have = 0;
    if (feature != nullptr) {
      CopyValues(*feature, out, row * size);
      have = CountOf(*feature);
    } else if (!wanted.is_variable()) {
      CopyElements(wanted.fallback, 0, size, out, row * size);
      have = size;
    }
    if (wanted.fallback.num_elements() == 0) {
      ClearElements(out, row * size + have, size - have);
      return;
    }
    for (; have < size; ++have) CopyElements(wanted.fallback, 0, 1, out, row * size + have);
  }

  Status AddRagged(const RaggedFeature& wanted, ParsedExamples* parsed) const {
    WEFT_ASSIGN_OR_RETURN(const std::vector<const Feature*> features,
                          FindAll(wanted.key, wanted.dtype));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Join(features, wanted.dtype));
    std::vector<int64_t> splits = {0};
    for (const Feature* feature : features) {
      splits.push_back(splits.back() + (feature != nullptr ? CountOf(*feature) : 0));
    }
    // A record alone needs none.
    const Shape shape{is_batch_ ? static_cast<int64_t>(splits.size()) : 0};
    splits.resize(static_cast<size_t>(shape.num_elements()));
    parsed->ragged_splits.push_back(
        wanted.splits == DType::kInt64
            ? Tensor::FromSpan<int64_t>(shape, splits)
            : Tensor::FromSpan<int32_t>(shape, std::vector<int32_t>(splits.begin(), splits.end())));
    parsed->ragged_values.push_back(std::move(values));
    return absl::OkStatus();
  }

  const ExampleSpec& spec_;
  const absl::Span<const std::string> names_;
  const bool is_batch_;
  std::vector<tensorflow::Example> records_;
};

}  // namespace

Status ExampleSpec::Check() const {
  for (size_t d = 0; d < dense.size(); ++d) {
    const DenseFeature& feature = dense[d];
    if (feature.fallback.dtype() != feature.dtype) {
      return InvalidArgument("dense_defaults[", d,
                             "].dtype() == ", DTypeName(feature.fallback.dtype()), " != Tdense[", d,
                             "] == ", DTypeName(feature.dtype));
    }
    if (feature.is_variable()) {
      if (feature.fallback.num_elements() == 1) continue;
      return InvalidArgument("dense_shape[", d,
                             "] is a variable length shape: ", feature.shape.ToString(),
                             ", therefore def_value[", d,
                             "] must contain a single element (the padding element).  But its "
                             "shape is: ",
                             feature.fallback.shape().ToString());
    }
    if (feature.fallback.num_elements() == 0 ||
        feature.shape.IsCompatibleWith(feature.fallback.shape())) {
      continue;
    }
    return InvalidArgument("def_value[", d, "].shape() == ", feature.fallback.shape().ToString(),
                           " is not compatible with dense_shapes_[", d,
                           "] == ", feature.shape.ToString());
  }
  return absl::OkStatus();
}

StatusOr<ParsedExamples> ParseExamples(const ExampleSpec& spec,
                                       absl::Span<const std::string> records,
                                       absl::Span<const std::string> names, bool is_batch) {
  WEFT_RETURN_IF_ERROR(spec.Check());
  Parser parser(spec, names, is_batch);
  WEFT_RETURN_IF_ERROR(parser.Parse(records));
  return parser.Collect();
}

}  // namespace weft::ops::io
