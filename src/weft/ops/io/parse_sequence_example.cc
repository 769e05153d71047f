// SPDX-License-Identifier: Apache-2.0
// Serialized records with sequences (tensorflow.SequenceExample) to tensors.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/feature_lists_kernel.h"
#include "weft/ops/io/parse_example_kernel.h"

namespace weft::ops::io::parse_sequence_example {
namespace {

// What all forms ask for. A record's context has the bytes of a tensorflow.Example.
struct SequenceSpec {
  ExampleSpec context;
  ListSpec lists;
};

template <typename Features, typename Types>
void AddFeatures(const Types& types, Features* features) {
  for (const DType dtype : types) {
    features->emplace_back();
    features->back().dtype = dtype;
  }
}

// Types and shapes; keys are not known yet.
StatusOr<SequenceSpec> SpecOf(const KernelConstruction& c) {
  SequenceSpec spec;
  const auto types = [&](const char* name) {
    return c.AttrOr<AttrValue::TypeList>(name, AttrValue::TypeList());
  };
  AddFeatures(types("context_sparse_types"), &spec.context.sparse);
  AddFeatures(types("Tcontext_dense"), &spec.context.dense);
  AddFeatures(types("feature_list_sparse_types"), &spec.lists.sparse);
  AddFeatures(types("feature_list_dense_types"), &spec.lists.dense);
  AddFeatures(types("context_ragged_value_types"), &spec.context.ragged);
  AddFeatures(types("feature_list_ragged_value_types"), &spec.lists.ragged);
  const auto context_splits = types("context_ragged_split_types");
  const auto list_splits = types("feature_list_ragged_split_types");
  WEFT_ASSIGN_OR_RETURN(const auto context_shapes,
                        c.Attr<AttrValue::ShapeList>("context_dense_shapes"));
  WEFT_ASSIGN_OR_RETURN(const auto list_shapes,
                        c.Attr<AttrValue::ShapeList>("feature_list_dense_shapes"));
  if (context_shapes.size() != spec.context.dense.size() ||
      list_shapes.size() != spec.lists.dense.size() ||
      context_splits.size() != spec.context.ragged.size() ||
      list_splits.size() != spec.lists.ragged.size()) {
    return InvalidArgument(
        "There must be as many shapes as dense types and as many split types as ragged types: ",
        context_shapes.size(), " and ", spec.context.dense.size(), ", ", list_shapes.size(),
        " and ", spec.lists.dense.size(), ", ", context_splits.size(), " and ",
        spec.context.ragged.size(), ", ", list_splits.size(), " and ", spec.lists.ragged.size());
  }
  for (size_t i = 0; i < context_shapes.size(); ++i) {
    if (!context_shapes[i].IsFullyDefined()) {
      return InvalidArgument("context_dense_shapes[", i,
                             "] is not fully defined: ", context_shapes[i].ToString());
    }
    spec.context.dense[i].shape = context_shapes[i];
  }
  for (size_t i = 0; i < list_shapes.size(); ++i) {
    if (!list_shapes[i].IsFullyDefined()) {
      return InvalidArgument("feature_list_dense_shapes[", i,
                             "] is not fully defined: ", list_shapes[i].ToString());
    }
    WEFT_ASSIGN_OR_RETURN(spec.lists.dense[i].shape, list_shapes[i].ToShape());
  }
  for (size_t i = 0; i < context_splits.size(); ++i) {
    spec.context.ragged[i].splits = context_splits[i];
  }
  for (size_t i = 0; i < list_splits.size(); ++i) spec.lists.ragged[i].splits = list_splits[i];
  return spec;
}

Status CheckNames(const Tensor& serialized, const Tensor& names) {
  if (names.num_elements() == 0 || names.shape() == serialized.shape()) return absl::OkStatus();
  return InvalidArgument("Expected len(debug_name) == len(serialized), but got: ",
                         names.num_elements(), " vs. ", serialized.num_elements());
}

template <typename Features>
Status SetKeys(absl::Span<const std::string> keys, const char* what, Features* features) {
  if (keys.size() != features->size()) {
    return InvalidArgument("Expected ", features->size(), " ", what, ", got ", keys.size());
  }
  for (size_t i = 0; i < keys.size(); ++i) (*features)[i].key = keys[i];
  return absl::OkStatus();
}

void AllowMissing(absl::Span<const std::string> names, SequenceSpec* spec) {
  for (DenseList& list : spec->lists.dense) {
    list.may_be_missing = std::find(names.begin(), names.end(), list.key) != names.end();
  }
}

// Sets the outputs. `has_lengths` and ragged features are not in every form.
Status Give(KernelContext& c, const SequenceSpec& spec, const Tensor& names, bool is_batch,
            bool has_lengths) {
  const absl::Span<const std::string> records = c.input(0).span<std::string>();
  WEFT_ASSIGN_OR_RETURN(ParsedExamples context,
                        ParseExamples(spec.context, records, names.span<std::string>(), is_batch));
  WEFT_ASSIGN_OR_RETURN(ParsedLists lists, ParseFeatureLists(spec.lists, records,
                                                             names.span<std::string>(), is_batch));
  if (!has_lengths) lists.dense_lengths.clear();
  int output = 0;
  for (auto* part :
       {&context.sparse_indices, &context.sparse_values, &context.sparse_shapes, &context.dense,
        &context.ragged_values, &context.ragged_splits, &lists.sparse_indices, &lists.sparse_values,
        &lists.sparse_shapes, &lists.dense, &lists.dense_lengths, &lists.ragged_values,
        &lists.ragged_outer_splits, &lists.ragged_inner_splits}) {
    for (Tensor& tensor : *part) c.SetOutput(output++, std::move(tensor));
  }
  return absl::OkStatus();
}

// Keys are attributes.
class ParseKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c));
    const auto keys = [&](const char* name, auto* features) -> Status {
      WEFT_ASSIGN_OR_RETURN(const auto given, c.Attr<AttrValue::StringList>(name));
      return SetKeys(given, name, features);
    };
    WEFT_RETURN_IF_ERROR(keys("context_sparse_keys", &spec.context.sparse));
    WEFT_RETURN_IF_ERROR(keys("context_dense_keys", &spec.context.dense));
    WEFT_RETURN_IF_ERROR(keys("feature_list_sparse_keys", &spec.lists.sparse));
    WEFT_RETURN_IF_ERROR(keys("feature_list_dense_keys", &spec.lists.dense));
    WEFT_ASSIGN_OR_RETURN(const auto may_miss, c.Attr<AttrValue::StringList>(
                                                   "feature_list_dense_missing_assumed_empty"));
    AllowMissing(may_miss, &spec);
    return std::make_unique<ParseKernel>(std::move(spec));
  }
  explicit ParseKernel(SequenceSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1) {
      return InvalidArgument("Expected serialized to be a vector, got shape: ",
                             c.input(0).shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(CheckNames(c.input(0), c.input(1)));
    SequenceSpec spec = spec_;
    int input = 2;
    for (DenseFeature& feature : spec.context.dense) feature.fallback = c.input(input++);
    return Give(c, spec, c.input(1), /*is_batch=*/true, /*has_lengths=*/true);
  }

 private:
  const SequenceSpec spec_;
};

// Keys are inputs, one vector for each kind of feature.
class ParseV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c));
    return std::make_unique<ParseV2Kernel>(std::move(spec));
  }
  explicit ParseV2Kernel(SequenceSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() > 1) {
      return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                             c.input(0).shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(CheckNames(c.input(0), c.input(1)));
    SequenceSpec spec = spec_;
    const auto keys = [&](int input, const char* what, auto* features) {
      return SetKeys(c.input(input).span<std::string>(), what, features);
    };
    WEFT_RETURN_IF_ERROR(keys(2, "context_sparse_keys", &spec.context.sparse));
    WEFT_RETURN_IF_ERROR(keys(3, "context_dense_keys", &spec.context.dense));
    WEFT_RETURN_IF_ERROR(keys(4, "context_ragged_keys", &spec.context.ragged));
    WEFT_RETURN_IF_ERROR(keys(5, "feature_list_sparse_keys", &spec.lists.sparse));
    WEFT_RETURN_IF_ERROR(keys(6, "feature_list_dense_keys", &spec.lists.dense));
    WEFT_RETURN_IF_ERROR(keys(7, "feature_list_ragged_keys", &spec.lists.ragged));
    if (c.input(8).num_elements() != static_cast<int64_t>(spec.lists.dense.size())) {
      return InvalidArgument("Expected len(feature_list_dense_missing_assumed_empty) == ",
                             spec.lists.dense.size(), ", got ", c.input(8).num_elements());
    }
    for (size_t i = 0; i < spec.lists.dense.size(); ++i) {
      spec.lists.dense[i].may_be_missing = c.input(8).data<bool>()[i];
    }
    int input = 9;
    for (DenseFeature& feature : spec.context.dense) feature.fallback = c.input(input++);
    return Give(c, spec, c.input(1), c.input(0).rank() == 1, /*has_lengths=*/true);
  }

 private:
  const SequenceSpec spec_;
};

// One record; keys are scalar inputs.
class ParseSingleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c));
    return std::make_unique<ParseSingleKernel>(std::move(spec));
  }
  explicit ParseSingleKernel(SequenceSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                             c.input(0).shape().ToString());
    }
    if (c.input(1).rank() != 1) {
      return InvalidArgument("Expected feature_list_dense_missing_assumed_empty to be a vector, ",
                             "got shape: ", c.input(1).shape().ToString());
    }
    SequenceSpec spec = spec_;
    int input = 2;
    const auto next_keys = [&](auto* features) -> Status {
      for (auto& feature : *features) {
        const Tensor& key = c.input(input++);
        if (key.rank() != 0) {
          return InvalidArgument("Expected keys to be scalars, got shape: ",
                                 key.shape().ToString());
        }
        feature.key = key.scalar<std::string>();
      }
      return absl::OkStatus();
    };
    WEFT_RETURN_IF_ERROR(next_keys(&spec.context.sparse));
    WEFT_RETURN_IF_ERROR(next_keys(&spec.context.dense));
    WEFT_RETURN_IF_ERROR(next_keys(&spec.lists.sparse));
    WEFT_RETURN_IF_ERROR(next_keys(&spec.lists.dense));
    for (DenseFeature& feature : spec.context.dense) feature.fallback = c.input(input++);
    const Tensor& name = c.input(input);
    if (name.rank() != 0) {
      return InvalidArgument("Expected debug_name to be a scalar, got shape: ",
                             name.shape().ToString());
    }
    AllowMissing(c.input(1).span<std::string>(), &spec);
    return Give(c, spec, name, /*is_batch=*/false, /*has_lengths=*/false);
  }

 private:
  const SequenceSpec spec_;
};

// `batch` is empty for one record alone.
Status OutputShapes(ShapeContext& c, const Dims& batch, bool has_lengths) {
  const auto types = [&](const char* name) {
    return FindAttrOr<AttrValue::TypeList>(c.attrs(), name, AttrValue::TypeList()).size();
  };
  int output = 0;
  const auto add = [&](size_t count, const PartialShape& shape) {
    for (size_t i = 0; i < count; ++i) c.set_output(output++, shape);
  };
  const auto add_sparse = [&](size_t count, int64_t rank) {
    add(count, PartialShape({-1, rank}));
    add(count, PartialShape({-1}));
    add(count, PartialShape({rank}));
  };
  const auto add_dense = [&](const char* name, const Dims& prefix) -> Status {
    WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>(name));
    for (const PartialShape& shape : shapes) {
      if (!shape.known_rank()) return InvalidArgument(name, " has a shape of unknown rank");
      Dims sizes = prefix;
      sizes.insert(sizes.end(), shape.dims().begin(), shape.dims().end());
      WEFT_ASSIGN_OR_RETURN(const PartialShape dense, PartialShape::Make(sizes));
      add(1, dense);
    }
    return absl::OkStatus();
  };
  const auto rank = static_cast<int64_t>(batch.size()) + 1;
  add_sparse(types("context_sparse_types"), rank);
  WEFT_RETURN_IF_ERROR(add_dense("context_dense_shapes", batch));
  add(2 * types("context_ragged_value_types"), PartialShape({-1}));
  add_sparse(types("feature_list_sparse_types"), rank + 1);
  Dims steps = batch;
  steps.push_back(-1);
  WEFT_RETURN_IF_ERROR(add_dense("feature_list_dense_shapes", steps));
  WEFT_ASSIGN_OR_RETURN(const PartialShape lengths, PartialShape::Make(batch));
  if (has_lengths) add(types("feature_list_dense_types"), lengths);
  add(3 * types("feature_list_ragged_value_types"), PartialShape({-1}));
  return absl::OkStatus();
}

Status ParseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRank(0, 1));
  return OutputShapes(c, {serialized.dim(0)}, true);
}

Status ParseV2Shape(ShapeContext& c) {
  if (!c.input(0).known_rank()) return shapes::Unknown(c);
  return OutputShapes(c, Dims(c.input(0).dims().begin(), c.input(0).dims().end()), true);
}

Status ParseSingleShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return OutputShapes(c, {}, false);
}

constexpr char kTypes[] = ": list({float, int64, string}) >= 0 = []";
constexpr char kSplits[] = ": list({int32, int64}) >= 0 = []";

void AddCounts(OpSpec& spec, bool has_dense_context) {
  spec.Attr("Ncontext_sparse: int >= 0 = 0");
  if (has_dense_context) spec.Attr("Ncontext_dense: int >= 0 = 0");
  spec.Attr("Nfeature_list_sparse: int >= 0 = 0").Attr("Nfeature_list_dense: int >= 0 = 0");
  for (const char* types : {"context_sparse_types", "Tcontext_dense", "feature_list_dense_types",
                            "feature_list_sparse_types"}) {
    spec.Attr(absl::StrCat(types, kTypes));
  }
  spec.Attr("context_dense_shapes: list(shape) >= 0 = []")
      .Attr("feature_list_dense_shapes: list(shape) >= 0 = []");
}

void AddContextOutputs(OpSpec& spec) {
  spec.Output("context_sparse_indices: Ncontext_sparse * int64")
      .Output("context_sparse_values: context_sparse_types")
      .Output("context_sparse_shapes: Ncontext_sparse * int64")
      .Output("context_dense_values: Tcontext_dense");
}

void AddListOutputs(OpSpec& spec) {
  spec.Output("feature_list_sparse_indices: Nfeature_list_sparse * int64")
      .Output("feature_list_sparse_values: feature_list_sparse_types")
      .Output("feature_list_sparse_shapes: Nfeature_list_sparse * int64")
      .Output("feature_list_dense_values: feature_list_dense_types");
}

OpSpec Parse() {
  OpSpec spec("ParseSequenceExample");
  spec.Doc(
          "The features of serialized tensorflow.SequenceExample records: those of the context as "
          "ParseExample gives them, those of the feature lists with one more dimension, for the "
          "steps.\nDense lists are filled up to the longest of the batch. InvalidArgument names "
          "the record, if `debug_name` does, and the feature list.")
      .Input("serialized: string")
      .Input("debug_name: string")
      .Input("context_dense_defaults: Tcontext_dense");
  AddContextOutputs(spec);
  AddListOutputs(spec);
  spec.Output("feature_list_dense_lengths: Nfeature_list_dense * int64");
  for (const char* keys :
       {"feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys",
        "feature_list_sparse_keys", "feature_list_dense_keys"}) {
    spec.Attr(absl::StrCat(keys, ": list(string) >= 0"));
  }
  AddCounts(spec, true);
  spec.Shape(ParseShape).NoGradient().Kernel(MakeKernel<ParseKernel>());
  return spec;
}

OpSpec ParseV2() {
  OpSpec spec("ParseSequenceExampleV2");
  spec.Doc(
      "The features of serialized tensorflow.SequenceExample records: sparse, dense and ragged "
      "ones of the context and of the feature lists.\nserialized: a vector, or a scalar for one "
      "record alone.");
  for (const char* input : {"serialized", "debug_name", "context_sparse_keys", "context_dense_keys",
                            "context_ragged_keys", "feature_list_sparse_keys",
                            "feature_list_dense_keys", "feature_list_ragged_keys"}) {
    spec.Input(absl::StrCat(input, ": string"));
  }
  spec.Input("feature_list_dense_missing_assumed_empty: bool")
      .Input("context_dense_defaults: Tcontext_dense");
  AddContextOutputs(spec);
  spec.Output("context_ragged_values: context_ragged_value_types")
      .Output("context_ragged_row_splits: context_ragged_split_types");
  AddListOutputs(spec);
  spec.Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
      .Output("feature_list_ragged_values: feature_list_ragged_value_types")
      .Output("feature_list_ragged_outer_splits: feature_list_ragged_split_types")
      .Output("feature_list_ragged_inner_splits: feature_list_ragged_split_types");
  AddCounts(spec, false);
  spec.Attr(absl::StrCat("context_ragged_value_types", kTypes))
      .Attr(absl::StrCat("context_ragged_split_types", kSplits))
      .Attr(absl::StrCat("feature_list_ragged_value_types", kTypes))
      .Attr(absl::StrCat("feature_list_ragged_split_types", kSplits));
  spec.Shape(ParseV2Shape).NoGradient().Kernel(MakeKernel<ParseV2Kernel>());
  return spec;
}

OpSpec ParseSingle() {
  OpSpec spec("ParseSingleSequenceExample");
  spec.Doc(
          "The features of one serialized tensorflow.SequenceExample record: those of the context "
          "as ParseSingleExample gives them, those of the feature lists with a dimension for the "
          "steps.")
      .Input("serialized: string")
      .Input("feature_list_dense_missing_assumed_empty: string")
      .Input("context_sparse_keys: Ncontext_sparse * string")
      .Input("context_dense_keys: Ncontext_dense * string")
      .Input("feature_list_sparse_keys: Nfeature_list_sparse * string")
      .Input("feature_list_dense_keys: Nfeature_list_dense * string")
      .Input("context_dense_defaults: Tcontext_dense")
      .Input("debug_name: string");
  AddContextOutputs(spec);
  AddListOutputs(spec);
  AddCounts(spec, true);
  spec.Shape(ParseSingleShape).NoGradient().Kernel(MakeKernel<ParseSingleKernel>());
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(Parse());
  catalogue.Add(ParseV2());
  catalogue.Add(ParseSingle());
}

}  // namespace weft::ops::io::parse_sequence_example
