// SPDX-License-Identifier: Apache-2.0
#include "weft/train/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::train {
namespace {

std::vector<DType> DTypesOf(const std::vector<TensorType>& types) {
  std::vector<DType> dtypes;
  for (const TensorType& type : types) dtypes.push_back(type.dtype);
  return dtypes;
}

AttrValue::ShapeList ShapesOf(const std::vector<TensorType>& types) {
  AttrValue::ShapeList shapes;
  for (const TensorType& type : types) shapes.push_back(type.shape);
  return shapes;
}

// Empty, with an error in the builder, where a tensor is.
std::vector<TensorType> TypesOf(GraphBuilder& builder, const std::vector<Endpoint>& tensors) {
  std::vector<TensorType> types;
  for (const Endpoint& tensor : tensors) {
    if (!tensor) {
      builder.Fail(InvalidArgument("A tensor that a dataset is made of is empty"));
      return {};
    }
    types.push_back({tensor.node->output_type(tensor.port).dtype, builder.ShapeOf(tensor)});
  }
  return types;
}

// A batch of `size` elements of that shape; -1: nobody knows how many.
PartialShape BatchOf(int64_t size, const PartialShape& shape) {
  if (!shape.known_rank()) return {};
  PartialShape batch{size};
  for (const int64_t dim : shape.dims()) batch.AddDim(dim);
  return batch;
}

PartialShape RowOf(const PartialShape& shape) {
  if (!shape.known_rank() || shape.rank() == 0) return {};
  PartialShape row = PartialShape::UnknownOfRank(shape.rank() - 1);
  for (int i = 1; i < shape.rank(); ++i) row.SetDim(i - 1, shape.dim(i));
  return row;
}

// What fits both.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return {};
  PartialShape common = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) common.SetDim(i, -1);
  }
  return common;
}

const char* OrderOf(bool in_order) { return in_order ? "true" : "false"; }

// A zero, or an empty string, to pad with.
Endpoint Blank(GraphBuilder& builder, DType dtype) {
  const StatusOr<Tensor> zero = Tensor::Zeros(dtype, Shape());
  if (zero.ok()) return builder.Constant(*zero);
  builder.Fail(zero.status());
  return {};
}

}  // namespace

Dataset Dataset::Make(GraphBuilder* builder, const char* op, std::vector<Argument> inputs,
                      std::vector<TensorType> types, AttrMap attrs, const char* types_attr) {
  Dataset made(builder, std::move(types));
  if (!builder->ok()) return made;
  if (types_attr != nullptr) {
    attrs[types_attr] = DTypesOf(made.types_);
    attrs["output_shapes"] = ShapesOf(made.types_);
  }
  made.variant_ = {builder->AddNode(op, inputs, std::move(attrs)), 0};
  return made;
}

bool Dataset::IsThere(const char* what) const {
  if (builder_ == nullptr) return false;
  if (!variant_) builder_->Fail(InvalidArgument(what, " of a dataset that is empty"));
  return builder_->ok();
}

Dataset Dataset::Then(const char* op, const std::vector<Argument>& inputs,
                      std::vector<TensorType> types, AttrMap attrs, const char* types_attr) const {
  if (!IsThere(op)) return Dataset(builder_, std::move(types));
  std::vector<Argument> all{variant_};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return Make(builder_, op, std::move(all), std::move(types), std::move(attrs), types_attr);
}

Dataset Dataset::Range(GraphBuilder& builder, int64_t start, int64_t stop, int64_t step) {
  return Make(&builder, "RangeDataset",
              {builder.Scalar<int64_t>(start), builder.Scalar<int64_t>(stop),
               builder.Scalar<int64_t>(step)},
              {{DType::kInt64, Shape()}});
}

Dataset Dataset::Tensors(GraphBuilder& builder, const std::vector<Endpoint>& components) {
  return Make(&builder, "TensorDataset", {components}, TypesOf(builder, components), {},
              "Toutput_types");
}

Dataset Dataset::Slices(GraphBuilder& builder, const std::vector<Endpoint>& components) {
  std::vector<TensorType> types = TypesOf(builder, components);
  for (TensorType& type : types) {
    if (type.shape.known_rank() && type.shape.rank() == 0) {
      builder.Fail(InvalidArgument("A scalar has no rows to make a dataset of"));
    }
    type.shape = RowOf(type.shape);
  }
  return Make(&builder, "TensorSliceDataset", {components}, std::move(types), {}, "Toutput_types");
}

Dataset Dataset::Files(GraphBuilder& builder, const std::vector<std::string>& patterns) {
  const Shape shape{static_cast<int64_t>(patterns.size())};
  return Make(&builder, "MatchingFilesDataset",
              {builder.Constant(Tensor::FromSpan<std::string>(shape, patterns))},
              {{DType::kString, Shape()}}, {}, nullptr);
}

Dataset Dataset::Lines(GraphBuilder& builder, Endpoint paths, const FileOptions& options) {
  return Make(&builder, "TextLineDataset",
              {paths, builder.Scalar<std::string>(options.compression),
               builder.Scalar<int64_t>(options.buffer_bytes)},
              {{DType::kString, Shape()}}, {}, nullptr);
}

Dataset Dataset::Records(GraphBuilder& builder, Endpoint paths, const FileOptions& options) {
  return Make(&builder, "TFRecordDataset",
              {paths, builder.Scalar<std::string>(options.compression),
               builder.Scalar<int64_t>(options.buffer_bytes)},
              {{DType::kString, Shape()}}, {}, nullptr);
}

Dataset Dataset::FixedRecords(GraphBuilder& builder, Endpoint paths, int64_t record_bytes,
                              const FixedRecordOptions& options) {
  const auto number = [&](int64_t value) { return builder.Scalar<int64_t>(value); };
  return Make(
      &builder, "FixedLengthRecordDatasetV2",
      {paths, number(options.header_bytes), number(record_bytes), number(options.footer_bytes),
       number(options.buffer_bytes), builder.Scalar<std::string>(options.compression)},
      {{DType::kString, Shape()}}, {}, nullptr);
}

Dataset Dataset::Zip(const std::vector<Dataset>& inputs) {
  std::vector<TensorType> types;
  std::vector<Endpoint> variants;
  for (const Dataset& input : inputs) {
    if (!input.IsThere("Zip")) return Dataset(input.builder_, {});
    types.insert(types.end(), input.types_.begin(), input.types_.end());
    variants.push_back(input.variant_);
  }
  if (inputs.empty()) return {};
  return Make(inputs[0].builder_, "ZipDataset", {variants}, std::move(types));
}

Function Dataset::Define(const char* name, const FunctionBody& body,
                         const std::vector<Endpoint>& captured) const {
  std::vector<TensorType> arguments = types_;
  for (const TensorType& type : TypesOf(*builder_, captured)) arguments.push_back(type);
  if (!builder_->ok()) return {};
  return DefineFunction(*builder_, UniqueFunctionName(builder_->graph(), name), arguments, body);
}

Function Dataset::DefineOfDatasets(const char* name, const Body& body,
                                   const std::vector<Endpoint>& captured,
                                   std::vector<TensorType>* types) const {
  const FunctionBody gives_variant = [&](GraphBuilder& inner, absl::Span<const Endpoint> in) {
    const Dataset made = body(inner, in);
    *types = made.types_;
    if (inner.ok() && !made.variant_) {
      inner.Fail(InvalidArgument("The function gives no dataset"));
    }
    return std::vector<Endpoint>{made.variant_};
  };
  return Define(name, gives_variant, captured);
}

Dataset Dataset::Map(const FunctionBody& function, const MapOptions& options) const {
  if (!IsThere("Map")) return Dataset(builder_, {});
  const Function f = Define("map", function, options.captured);
  if (options.parallel_calls == 1) {
    return Then("MapDataset", {options.captured}, f.results, {{"f", f.ref()}});
  }
  return Then("ParallelMapDatasetV2",
              {options.captured, builder_->Scalar<int64_t>(options.parallel_calls)}, f.results,
              {{"f", f.ref()}, {"deterministic", OrderOf(options.in_order)}});
}

Dataset Dataset::Filter(const FunctionBody& predicate,
                        const std::vector<Endpoint>& captured) const {
  if (!IsThere("Filter")) return Dataset(builder_, types_);
  const Function f = Define("filter", predicate, captured);
  if (builder_->ok() && (f.results.size() != 1 || f.results[0].dtype != DType::kBool)) {
    builder_->Fail(InvalidArgument("The function of a filter must give one boolean scalar"));
  }
  return Then("FilterDataset", {captured}, types_, {{"predicate", f.ref()}});
}

Dataset Dataset::FlatMap(const Body& function, const std::vector<Endpoint>& captured) const {
  if (!IsThere("FlatMap")) return Dataset(builder_, {});
  std::vector<TensorType> types;
  const Function f = DefineOfDatasets("flat_map", function, captured, &types);
  return Then("FlatMapDataset", {captured}, std::move(types), {{"f", f.ref()}});
}

Dataset Dataset::Interleave(const Body& function, const InterleaveOptions& options) const {
  if (!IsThere("Interleave")) return Dataset(builder_, {});
  std::vector<TensorType> types;
  const Function f = DefineOfDatasets("interleave", function, options.captured, &types);
  const auto number = [this](int64_t value) { return builder_->Scalar<int64_t>(value); };
  const Endpoint cycle = number(options.cycle_length), block = number(options.block_length);
  if (options.parallel_calls == 1) {
    return Then("InterleaveDataset", {options.captured, cycle, block}, std::move(types),
                {{"f", f.ref()}});
  }
  return Then("ParallelInterleaveDatasetV4",
              {options.captured, cycle, block, number(kAsManyAsGood), number(kAsManyAsGood),
               number(options.parallel_calls)},
              std::move(types), {{"f", f.ref()}, {"deterministic", OrderOf(options.in_order)}});
}

Dataset Dataset::Batch(int64_t size, bool drop_remainder) const {
  if (!IsThere("Batch")) return Dataset(builder_, types_);
  std::vector<TensorType> types = types_;
  for (TensorType& type : types) type.shape = BatchOf(drop_remainder ? size : -1, type.shape);
  return Then("BatchDatasetV2",
              {builder_->Scalar<int64_t>(size), builder_->Scalar<bool>(drop_remainder)},
              std::move(types));
}

Dataset Dataset::PaddedBatch(int64_t size, const PadOptions& options) const {
  if (!IsThere("PaddedBatch")) return Dataset(builder_, types_);
  const size_t n = types_.size();
  if ((!options.shapes.empty() && options.shapes.size() != n) ||
      (!options.values.empty() && options.values.size() != n)) {
    builder_->Fail(InvalidArgument("A padded batch needs a shape and a value for each of ", n,
                                   " components, got ", options.shapes.size(), " shapes and ",
                                   options.values.size(), " values"));
    return Dataset(builder_, types_);
  }
  std::vector<TensorType> types = types_;
  std::vector<Endpoint> shapes;
  std::vector<Endpoint> values = options.values;
  for (size_t i = 0; i < n; ++i) {
    const PartialShape& shape = options.shapes.empty() ? types_[i].shape : options.shapes[i];
    if (!shape.known_rank()) {
      builder_->Fail(InvalidArgument("Component ", i, " of a padded batch has an unknown rank"));
      return Dataset(builder_, types_);
    }
    shapes.push_back(builder_->Constant(
        Tensor::FromSpan<int64_t>(Shape{shape.rank()}, shape.dims()), "padded_shape"));
    if (options.values.empty()) values.push_back(Blank(*builder_, types_[i].dtype));
    types[i].shape = BatchOf(options.drop_remainder ? size : -1, shape);
  }
  return Then("PaddedBatchDatasetV2",
              {builder_->Scalar<int64_t>(size), shapes, values,
               builder_->Scalar<bool>(options.drop_remainder)},
              std::move(types), {}, "Toutput_types");
}

Dataset Dataset::Unbatch() const {
  std::vector<TensorType> types = types_;
  for (TensorType& type : types) type.shape = RowOf(type.shape);
  return Then("UnbatchDataset", {}, std::move(types));
}

Dataset Dataset::Shuffle(int64_t buffer, const ShuffleOptions& options) const {
  if (!IsThere("Shuffle")) return Dataset(builder_, types_);
  return Then("ShuffleDataset",
              {builder_->Scalar<int64_t>(buffer), builder_->Scalar<int64_t>(options.seed),
               builder_->Scalar<int64_t>(options.seed2)},
              types_, {{"reshuffle_each_iteration", options.again_each_time}});
}

Dataset Dataset::Repeat(int64_t count) const {
  if (!IsThere("Repeat")) return Dataset(builder_, types_);
  return Then("RepeatDataset", {builder_->Scalar<int64_t>(count)}, types_);
}

Dataset Dataset::Take(int64_t count) const {
  if (!IsThere("Take")) return Dataset(builder_, types_);
  return Then("TakeDataset", {builder_->Scalar<int64_t>(count)}, types_);
}

Dataset Dataset::Skip(int64_t count) const {
  if (!IsThere("Skip")) return Dataset(builder_, types_);
  return Then("SkipDataset", {builder_->Scalar<int64_t>(count)}, types_);
}

Dataset Dataset::Shard(int64_t num_shards, int64_t index) const {
  if (!IsThere("Shard")) return Dataset(builder_, types_);
  return Then("ShardDataset",
              {builder_->Scalar<int64_t>(num_shards), builder_->Scalar<int64_t>(index)}, types_);
}

Dataset Dataset::Cache(const std::string& path) const {
  if (!IsThere("Cache")) return Dataset(builder_, types_);
  return Then("CacheDataset", {builder_->Scalar<std::string>(path)}, types_);
}

Dataset Dataset::Prefetch(int64_t buffer) const {
  if (!IsThere("Prefetch")) return Dataset(builder_, types_);
  return Then("PrefetchDataset", {builder_->Scalar<int64_t>(buffer)}, types_);
}

Dataset Dataset::Concatenate(const Dataset& next) const {
  if (!IsThere("Concatenate") || !next.IsThere("Concatenate")) return Dataset(builder_, types_);
  if (DTypesOf(types_) != DTypesOf(next.types_)) {
    builder_->Fail(InvalidArgument("Datasets of other types cannot be put behind each other"));
    return Dataset(builder_, types_);
  }
  std::vector<TensorType> types = types_;
  for (size_t i = 0; i < types.size(); ++i) {
    types[i].shape = Common(types[i].shape, next.types_[i].shape);
  }
  return Then("ConcatenateDataset", {next.variant_}, std::move(types));
}

DatasetIterator AddIterator(Program& program, const Dataset& dataset, const std::string& name,
                            bool saved) {
  DatasetIterator iterator;
  GraphBuilder& builder = program.builder();
  if (!dataset.variant()) builder.Fail(InvalidArgument("An iterator needs a dataset"));
  if (!builder.ok()) return iterator;
  const AttrMap spec{{"output_types", DTypesOf(dataset.types())},
                     {"output_shapes", ShapesOf(dataset.types())}};
  AttrMap own = spec;
  own["shared_name"] = "";
  own["container"] = "";
  Node* node = builder.AddNode("IteratorV2", {}, std::move(own), name);
  if (node == nullptr) return iterator;
  iterator.name = node->name();
  iterator.handle = {node, 0};
  iterator.initializer = builder.AddNode("MakeIterator", {dataset.variant(), iterator.handle}, {},
                                         absl::StrCat(name, "/begin"));
  Node* next =
      builder.AddNode("IteratorGetNext", {iterator.handle}, spec, absl::StrCat(name, "/next"));
  for (int port = 0; next != nullptr && port < next->num_outputs(); ++port) {
    iterator.next.push_back({next, port});
  }
  ProgramState state{.name = absl::StrCat(iterator.name, "_STATE"),
                     .device = builder.device(),
                     .initializer = iterator.initializer};
  if (saved) {
    state.value =
        builder.Op("SerializeIterator", {iterator.handle}, {}, absl::StrCat(name, "/state"));
    state.restore = [handle = iterator.handle](GraphBuilder& b, Endpoint value) {
      return b.AddNode("DeserializeIterator", {handle, value});
    };
  }
  if (builder.ok()) program.AddState(std::move(state));
  return iterator;
}

}  // namespace weft::train
