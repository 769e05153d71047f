// SPDX-License-Identifier: Apache-2.0
// The features of batches of serialized records (tensorflow.Example).
#include <map>
#include <utility>

#include "weft/data/calls_ahead.h"
#include "weft/data/transform.h"
#include "weft/ops/io/parse_example_kernel.h"
#include "weft/ops/ragged/ragged_value_kernel.h"
#include "weft/ops/sparse/parts_kernel.h"

namespace weft::ops::pipeline::parse_example {
namespace {

using weft::data::ContextPtr;
using weft::data::DatasetRef;
using weft::data::Element;
using weft::data::ElementSpec;
using weft::data::IteratorPtr;

StatusOr<Tensor> VariantOfSparse(Tensor indices, Tensor values, Tensor shape) {
  WEFT_ASSIGN_OR_RETURN(Tensor parts, Tensor::Zeros(DType::kVariant, Shape{3}));
  int64_t at = 0;
  for (Tensor* part : {&indices, &values, &shape}) {
    parts.data<Variant>()[at++].value = MakeRef<sparse::TensorInVariant>(std::move(*part));
  }
  return parts;
}

// The features of one element: a vector of records. They come in the order of their keys.
StatusOr<Element> Parse(const io::ExampleSpec& spec, const Element& records) {
  if (records.size() != 1 || records[0].dtype() != DType::kString || records[0].rank() != 1) {
    return InvalidArgument("Elements must be vectors of serialized records");
  }
  WEFT_ASSIGN_OR_RETURN(io::ParsedExamples parsed,
                        io::ParseExamples(spec, records[0].span<std::string>(), {}, true));
  std::map<std::string, Tensor> by_key;
  for (size_t i = 0; i < spec.sparse.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(
        by_key[spec.sparse[i].key],
        VariantOfSparse(std::move(parsed.sparse_indices[i]), std::move(parsed.sparse_values[i]),
                        std::move(parsed.sparse_shapes[i])));
  }
  for (size_t i = 0; i < spec.dense.size(); ++i) {
    by_key[spec.dense[i].key] = std::move(parsed.dense[i]);
  }
  for (size_t i = 0; i < spec.ragged.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(ragged::Splits splits, ragged::SplitsOf(parsed.ragged_splits[i]));
    std::vector<ragged::Splits> levels;
    levels.push_back(std::move(splits));
    by_key[spec.ragged[i].key] = Tensor::Scalar(Variant{
        MakeRef<ragged::RaggedValue>(std::move(levels), std::move(parsed.ragged_values[i]))});
  }
  Element element;
  for (auto& [key, tensor] : by_key) element.push_back(std::move(tensor));
  return element;
}

class Parsed final : public weft::data::TransformDataset {
 public:
  Parsed(ElementSpec spec, DatasetRef input, io::ExampleSpec features, int64_t num_parallel)
      : TransformDataset(std::move(spec), std::move(input)),
        features_(std::move(features)),
        num_parallel_(num_parallel) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return weft::data::Started<Iterator>(this, context);
  }

 private:
  // Several elements are parsed at once, on the threads of the device.
  class Iterator final : public weft::data::TransformIterator<Parsed> {
   public:
    Iterator(const Parsed* dataset, ContextPtr context)
        : TransformIterator(dataset, context),
          calls_(context, dataset->num_parallel_,
                 [features = &dataset->features_](
                     weft::data::IteratorContext&, const Element& records,
                     FunctionRunner::Done done) { done(Parse(*features, records)); }) {}
    StatusOr<bool> Next(Element* element) override {
      return calls_.Take([this](Element* records) { return input()->Next(records); }, element);
    }

   private:
    weft::data::CallsAhead calls_;  // ends before dataset and input go
  };

  const io::ExampleSpec features_;
  const int64_t num_parallel_;
};

StatusOr<io::ExampleSpec> FeaturesOf(const KernelContext& c) {
  const OpCall& call = c.call();
  io::ExampleSpec spec;
  WEFT_ASSIGN_OR_RETURN(const auto sparse, call.Attr<AttrValue::StringList>("sparse_keys"));
  WEFT_ASSIGN_OR_RETURN(const auto sparse_types, call.Attr<AttrValue::TypeList>("sparse_types"));
  WEFT_ASSIGN_OR_RETURN(const auto dense, call.Attr<AttrValue::StringList>("dense_keys"));
  WEFT_ASSIGN_OR_RETURN(const auto dense_types, call.Attr<AttrValue::TypeList>("Tdense"));
  WEFT_ASSIGN_OR_RETURN(const auto shapes, call.Attr<AttrValue::ShapeList>("dense_shapes"));
  WEFT_ASSIGN_OR_RETURN(const Element fallbacks, weft::data::ListInput(c, "dense_defaults"));
  const auto ragged = FindAttrOr<AttrValue::StringList>(call.attrs(), "ragged_keys", {});
  const auto values = FindAttrOr<AttrValue::TypeList>(call.attrs(), "ragged_value_types", {});
  const auto splits = FindAttrOr<AttrValue::TypeList>(call.attrs(), "ragged_split_types", {});
  if (sparse.size() != sparse_types.size() || dense.size() != dense_types.size() ||
      dense.size() != shapes.size() || dense.size() != fallbacks.size() ||
      ragged.size() != values.size() || ragged.size() != splits.size()) {
    return InvalidArgument("There must be as many keys as types, shapes and defaults");
  }
  for (size_t i = 0; i < sparse.size(); ++i) spec.sparse.push_back({sparse[i], sparse_types[i]});
  for (size_t i = 0; i < dense.size(); ++i) {
    bool known = shapes[i].known_rank();
    for (int d = 1; known && d < shapes[i].rank(); ++d) known = shapes[i].dim(d) >= 0;
    if (!known) {
      return InvalidArgument("dense_shapes[", i, "] has unknown rank or unknown inner dimensions: ",
                             shapes[i].ToString());
    }
    spec.dense.push_back({dense[i], dense_types[i], shapes[i], fallbacks[i]});
  }
  for (size_t i = 0; i < ragged.size(); ++i) {
    spec.ragged.push_back({ragged[i], values[i], splits[i]});
  }
  WEFT_RETURN_IF_ERROR(spec.Check());
  return spec;
}

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, weft::data::DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const auto asked,
                        weft::data::ScalarInput<int64_t>(c, "num_parallel_calls"));
  WEFT_ASSIGN_OR_RETURN(const int64_t calls, weft::data::ParallelCalls(asked));
  WEFT_ASSIGN_OR_RETURN(io::ExampleSpec features, FeaturesOf(c));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, weft::data::DeclaredSpec(c));
  if (spec.types.size() !=
      features.sparse.size() + features.dense.size() + features.ragged.size()) {
    return InvalidArgument("There must be an output type for each key, got ", spec.types.size());
  }
  return DatasetRef(MakeRef<Parsed>(std::move(spec), std::move(input), std::move(features), calls));
}

weft::data::DatasetOpSpec Spec(const char* name, const char* doc, const char* order,
                               bool has_ragged) {
  weft::data::DatasetOpSpec spec{
      .name = name,
      .doc = doc,
      .inputs = {"input_dataset: variant", "num_parallel_calls: int64", "dense_defaults: Tdense"},
      .attrs = {"sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0",
                "sparse_types: list({float, int64, string}) >= 0",
                "Tdense: list({float, int64, string}) >= 0", "dense_shapes: list(shape) >= 0",
                "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1", order},
      .make = Make};
  if (has_ragged) {
    spec.attrs.insert(spec.attrs.end(),
                      {"ragged_keys: list(string) >= 0 = []",
                       "ragged_value_types: list({float, int64, string}) >= 0 = []",
                       "ragged_split_types: list({int32, int64}) >= 0 = []"});
  }
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  weft::data::AddDataset(
      catalogue, Spec("ParseExampleDataset",
                      "A dataset of the features of each batch of serialized tensorflow.Example "
                      "records, in the order of their keys.\nSparse features are three variants, "
                      "ragged ones one; up to `num_parallel_calls` elements are parsed at once.",
                      "sloppy: bool = false", true));
  weft::data::AddDataset(
      catalogue, Spec("ParseExampleDatasetV2",
                      "A dataset of the features of each batch of serialized tensorflow.Example "
                      "records, as ParseExampleDataset gives.",
                      "deterministic: string = 'default'", true));
  weft::data::AddDataset(
      catalogue, Spec("ExperimentalParseExampleDataset",
                      "ParseExampleDataset under its first name.", "sloppy: bool = false", false));
}

}  // namespace weft::ops::pipeline::parse_example
