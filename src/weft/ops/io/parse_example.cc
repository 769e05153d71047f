// SPDX-License-Identifier: Apache-2.0
// Serialized records (tensorflow.Example) to tensors.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/parse_example_kernel.h"

namespace weft::ops::io::parse_example {
namespace {

// What all forms have as attributes.
StatusOr<ExampleSpec> SpecOf(const KernelConstruction& c) {
  ExampleSpec spec;
  WEFT_ASSIGN_OR_RETURN(const auto sparse, c.Attr<AttrValue::TypeList>("sparse_types"));
  WEFT_ASSIGN_OR_RETURN(const auto dense, c.Attr<AttrValue::TypeList>("Tdense"));
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>("dense_shapes"));
  if (dense.size() != shapes.size()) {
    return InvalidArgument("len(dense_keys) != len(dense_shapes): ", dense.size(), " and ",
                           shapes.size());
  }
  for (const DType dtype : sparse) spec.sparse.push_back({.key = "", .dtype = dtype});
  for (size_t d = 0; d < dense.size(); ++d) {
    bool known = shapes[d].known_rank();
    for (int i = 1; known && i < shapes[d].rank(); ++i) known = shapes[d].dim(i) >= 0;
    if (!known) {
      return InvalidArgument("dense_shapes[", d, "] has unknown rank or unknown inner dimensions: ",
                             shapes[d].ToString());
    }
    spec.dense.push_back({.key = "", .dtype = dense[d], .shape = shapes[d], .fallback = {}});
  }
  return spec;
}

Status Give(KernelContext& c, ParsedExamples parsed) {
  int output = 0;
  for (auto* part : {&parsed.sparse_indices, &parsed.sparse_values, &parsed.sparse_shapes,
                     &parsed.dense, &parsed.ragged_values, &parsed.ragged_splits}) {
    for (Tensor& tensor : *part) c.SetOutput(output++, std::move(tensor));
  }
  return absl::OkStatus();
}

Status CheckNames(const Tensor& serialized, const Tensor& names) {
  if (names.num_elements() == 0 || names.shape() == serialized.shape()) return absl::OkStatus();
  return InvalidArgument("Expected len(names) == len(serialized), but got: ", names.num_elements(),
                         " vs. ", serialized.num_elements());
}

// Keys are inputs, one scalar each.
class ParseKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(ExampleSpec spec, SpecOf(c));
    WEFT_ASSIGN_OR_RETURN(const auto sparse, c.Attr<int64_t>("Nsparse"));
    WEFT_ASSIGN_OR_RETURN(const auto dense, c.Attr<int64_t>("Ndense"));
    if (sparse != static_cast<int64_t>(spec.sparse.size()) ||
        dense != static_cast<int64_t>(spec.dense.size())) {
      return InvalidArgument("There are ", sparse, " sparse_keys and ", spec.sparse.size(),
                             " sparse_types, ", dense, " dense_keys and ", spec.dense.size(),
                             " Tdense");
    }
    return std::make_unique<ParseKernel>(std::move(spec));
  }
  explicit ParseKernel(ExampleSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    const Tensor &serialized = c.input(0), &names = c.input(1);
    if (serialized.rank() != 1) {
      return InvalidArgument("Expected serialized to be a vector, got shape: ",
                             serialized.shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(CheckNames(serialized, names));
    ExampleSpec spec = spec_;
    int input = 2;
    const auto next_key = [&](std::string* key) -> Status {
      const Tensor& given = c.input(input++);
      if (given.rank() != 0) {
        return InvalidArgument("Expected keys to be scalars, got shape: ",
                               given.shape().ToString());
      }
      *key = given.scalar<std::string>();
      return absl::OkStatus();
    };
    for (SparseFeature& feature : spec.sparse) WEFT_RETURN_IF_ERROR(next_key(&feature.key));
    for (DenseFeature& feature : spec.dense) WEFT_RETURN_IF_ERROR(next_key(&feature.key));
    for (DenseFeature& feature : spec.dense) feature.fallback = c.input(input++);
    WEFT_ASSIGN_OR_RETURN(ParsedExamples parsed,
                          ParseExamples(spec, serialized.span<std::string>(),
                                        names.span<std::string>(), /*is_batch=*/true));
    return Give(c, std::move(parsed));
  }

 private:
  const ExampleSpec spec_;
};

// Keys are inputs, one vector for each kind of feature.
class ParseV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(ExampleSpec spec, SpecOf(c));
    WEFT_ASSIGN_OR_RETURN(const auto values, c.Attr<AttrValue::TypeList>("ragged_value_types"));
    WEFT_ASSIGN_OR_RETURN(const auto splits, c.Attr<AttrValue::TypeList>("ragged_split_types"));
    if (values.size() != splits.size()) {
      return InvalidArgument("len(ragged_value_types) != len(ragged_split_types): ", values.size(),
                             " and ", splits.size());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      spec.ragged.push_back({.key = "", .dtype = values[i], .splits = splits[i]});
    }
    return std::make_unique<ParseV2Kernel>(std::move(spec));
  }
  explicit ParseV2Kernel(ExampleSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    const Tensor &serialized = c.input(0), &names = c.input(1);
    if (serialized.rank() > 1) {
      return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                             serialized.shape().ToString());
    }
    WEFT_RETURN_IF_ERROR(CheckNames(serialized, names));
    ExampleSpec spec = spec_;
    WEFT_RETURN_IF_ERROR(SetKeys(c.input(2), "sparse_keys", &spec.sparse));
    WEFT_RETURN_IF_ERROR(SetKeys(c.input(3), "dense_keys", &spec.dense));
    WEFT_RETURN_IF_ERROR(SetKeys(c.input(4), "ragged_keys", &spec.ragged));
    int input = 5;
    for (DenseFeature& feature : spec.dense) feature.fallback = c.input(input++);
    WEFT_ASSIGN_OR_RETURN(ParsedExamples parsed,
                          ParseExamples(spec, serialized.span<std::string>(),
                                        names.span<std::string>(), serialized.rank() == 1));
    return Give(c, std::move(parsed));
  }

 private:
  template <typename Features>
  static Status SetKeys(const Tensor& keys, const char* what, Features* features) {
    if (keys.rank() != 1 || keys.dim(0) != static_cast<int64_t>(features->size())) {
      return InvalidArgument("Expected ", what, " to be a vector of ", features->size(),
                             ", got shape: ", keys.shape().ToString());
    }
    for (size_t i = 0; i < features->size(); ++i) {
      (*features)[i].key = keys.data<std::string>()[i];
    }
    return absl::OkStatus();
  }

  const ExampleSpec spec_;
};

// One record; keys are attributes.
class ParseSingleKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(ExampleSpec spec, SpecOf(c));
    WEFT_ASSIGN_OR_RETURN(const auto sparse, c.Attr<AttrValue::StringList>("sparse_keys"));
    WEFT_ASSIGN_OR_RETURN(const auto dense, c.Attr<AttrValue::StringList>("dense_keys"));
    if (sparse.size() != spec.sparse.size() || dense.size() != spec.dense.size()) {
      return InvalidArgument("There are ", sparse.size(), " sparse_keys and ", spec.sparse.size(),
                             " sparse_types, ", dense.size(), " dense_keys and ", spec.dense.size(),
                             " Tdense");
    }
    for (size_t i = 0; i < sparse.size(); ++i) spec.sparse[i].key = sparse[i];
    for (size_t i = 0; i < dense.size(); ++i) spec.dense[i].key = dense[i];
    return std::make_unique<ParseSingleKernel>(std::move(spec));
  }
  explicit ParseSingleKernel(ExampleSpec spec) : spec_(std::move(spec)) {}

  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                             c.input(0).shape().ToString());
    }
    ExampleSpec spec = spec_;
    int input = 1;
    for (DenseFeature& feature : spec.dense) feature.fallback = c.input(input++);
    WEFT_ASSIGN_OR_RETURN(ParsedExamples parsed, ParseExamples(spec, c.input(0).span<std::string>(),
                                                               {}, /*is_batch=*/false));
    return Give(c, std::move(parsed));
  }

 private:
  const ExampleSpec spec_;
};

// `batch` is empty for one record alone; `ragged` counts features.
Status OutputShapes(ShapeContext& c, const Dims& batch, size_t ragged) {
  WEFT_ASSIGN_OR_RETURN(const auto sparse, c.Attr<AttrValue::TypeList>("sparse_types"));
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>("dense_shapes"));
  const auto count = static_cast<int>(sparse.size());
  const auto rank = static_cast<int64_t>(batch.size()) + 1;
  for (int i = 0; i < count; ++i) {
    c.set_output(i, PartialShape({-1, rank}));
    c.set_output(count + i, PartialShape({-1}));
    c.set_output(2 * count + i, PartialShape({rank}));
  }
  int output = 3 * count;
  for (const PartialShape& shape : shapes) {
    Dims sizes = batch;
    sizes.insert(sizes.end(), shape.dims().begin(), shape.dims().end());
    WEFT_ASSIGN_OR_RETURN(PartialShape dense, PartialShape::Make(sizes));
    c.set_output(output++, std::move(dense));
  }
  for (size_t i = 0; i < 2 * ragged; ++i) c.set_output(output++, PartialShape({-1}));
  return absl::OkStatus();
}

Status ParseShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRank(0, 1));
  return OutputShapes(c, {serialized.dim(0)}, 0);
}

Status ParseV2Shape(ShapeContext& c) {
  if (!c.input(0).known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const auto ragged, c.Attr<AttrValue::TypeList>("ragged_value_types"));
  return OutputShapes(c, Dims(c.input(0).dims().begin(), c.input(0).dims().end()), ragged.size());
}

Status ParseSingleShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return OutputShapes(c, {}, 0);
}

constexpr char kTypes[] = ": list({float, int64, string}) >= 0";

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("ParseExample")
          .Doc("The features of serialized tensorflow.Example records: sparse ones as sparse "
               "matrices with one row a record, dense ones as [batch] + dense_shapes[i].\nA record "
               "without a dense feature gets its default, which has no elements if the feature "
               "must be there. InvalidArgument names the record, if `names` does, and the feature.")
          .Input("serialized: string")
          .Input("names: string")
          .Input("sparse_keys: Nsparse * string")
          .Input("dense_keys: Ndense * string")
          .Input("dense_defaults: Tdense")
          .Output("sparse_indices: Nsparse * int64")
          .Output("sparse_values: sparse_types")
          .Output("sparse_shapes: Nsparse * int64")
          .Output("dense_values: Tdense")
          .Attr("Nsparse: int >= 0")
          .Attr("Ndense: int >= 0")
          .Attr(absl::StrCat("sparse_types", kTypes))
          .Attr(absl::StrCat("Tdense", kTypes))
          .Attr("dense_shapes: list(shape) >= 0")
          .Shape(ParseShape)
          .NoGradient()
          .Kernel(MakeKernel<ParseKernel>()));
  catalogue.Add(
      OpSpec("ParseExampleV2")
          .Doc(
              "The features of serialized tensorflow.Example records: sparse, dense, and ragged "
              "ones, whose values come with where each record's begin.\nserialized: a vector, or a "
              "scalar for one record alone. A record without a dense feature gets its default, "
              "which has no elements if the feature must be there.")
          .Input("serialized: string")
          .Input("names: string")
          .Input("sparse_keys: string")
          .Input("dense_keys: string")
          .Input("ragged_keys: string")
          .Input("dense_defaults: Tdense")
          .Output("sparse_indices: num_sparse * int64")
          .Output("sparse_values: sparse_types")
          .Output("sparse_shapes: num_sparse * int64")
          .Output("dense_values: Tdense")
          .Output("ragged_values: ragged_value_types")
          .Output("ragged_row_splits: ragged_split_types")
          .Attr(absl::StrCat("Tdense", kTypes))
          .Attr("num_sparse: int >= 0")
          .Attr(absl::StrCat("sparse_types", kTypes))
          .Attr(absl::StrCat("ragged_value_types", kTypes))
          .Attr("ragged_split_types: list({int32, int64}) >= 0")
          .Attr("dense_shapes: list(shape) >= 0")
          .Shape(ParseV2Shape)
          .NoGradient()
          .Kernel(MakeKernel<ParseV2Kernel>()));
  catalogue.Add(
      OpSpec("ParseSingleExample")
          .Doc(
              "The features of one serialized tensorflow.Example record: sparse ones as sparse "
              "vectors, dense ones of shape dense_shapes[i].\nA dense feature that is missing gets "
              "its default, which has no elements if it must be there.")
          .Input("serialized: string")
          .Input("dense_defaults: Tdense")
          .Output("sparse_indices: num_sparse * int64")
          .Output("sparse_values: sparse_types")
          .Output("sparse_shapes: num_sparse * int64")
          .Output("dense_values: Tdense")
          .Attr("num_sparse: int >= 0")
          .Attr("sparse_keys: list(string) >= 0")
          .Attr("dense_keys: list(string) >= 0")
          .Attr(absl::StrCat("sparse_types", kTypes))
          .Attr(absl::StrCat("Tdense", kTypes))
          .Attr("dense_shapes: list(shape) >= 0")
          .Shape(ParseSingleShape)
          .NoGradient()
          .Kernel(MakeKernel<ParseSingleKernel>()));
}

}  // namespace weft::ops::io::parse_example
