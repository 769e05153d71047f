// SPDX-License-Identifier: Apache-2.0
#include "weft/data/dataset_op.h"

#include "base/threads.h"

namespace weft::data {
namespace {

class DatasetKernel final : public OpKernel {
 public:
  explicit DatasetKernel(DatasetMaker make) : make_(make) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(DatasetRef dataset, make_(c));
    if (dataset->origin() == nullptr) dataset->set_origin(OriginOf(c));
    c.SetOutput(0, VariantOf(std::move(dataset)));
    return absl::OkStatus();
  }

 private:
  static std::unique_ptr<const DatasetOrigin> OriginOf(const KernelContext& c) {
    auto origin = std::make_unique<DatasetOrigin>();
    origin->op = c.call().op();
    origin->attrs = c.call().attrs();
    for (int i = 0; i < c.num_inputs(); ++i) origin->inputs.push_back(c.input(i));
    if (auto* const owner = dynamic_cast<LibraryOwner*>(c.environment().functions)) {
      for (const auto& [name, value] : origin->attrs) {
        if (value.KindName().find("func") == std::string::npos) continue;
        origin->functions = owner->Library();
      }
    }
    return origin;
  }

  const DatasetMaker make_;
};

}  // namespace

void AddDataset(Catalogue& catalogue, DatasetOpSpec spec) {
  OpSpec op(spec.name);
  op.Doc(spec.doc);
  for (const std::string& input : spec.inputs) op.Input(input);
  op.Output(spec.output);
  for (const std::string& attr : spec.attrs) op.Attr(attr);
  if (spec.is_stateful) op.Stateful();
  op.Shape(shapes::Scalar).NoGradient();
  op.Kernel([make = spec.make](KernelConstruction&) -> StatusOr<std::unique_ptr<OpKernel>> {
    return std::make_unique<DatasetKernel>(make);
  });
  catalogue.Add(std::move(op));
}

void AddUnderBothNames(Catalogue& catalogue, DatasetOpSpec spec,
                       const std::vector<std::string>& newer) {
  DatasetOpSpec first = spec;
  first.name = "Experimental" + spec.name;
  first.doc = spec.name + " under its first name.";
  spec.attrs.insert(spec.attrs.end(), newer.begin(), newer.end());
  AddDataset(catalogue, std::move(spec));
  AddDataset(catalogue, std::move(first));
}

StatusOr<InputRange> InputsNamed(const KernelContext& c, absl::string_view name) {
  InputRange range;
  for (const ArgSchema& arg : c.call().schema().inputs) {
    range.count = 1;
    if (!arg.number_attr.empty()) {
      WEFT_ASSIGN_OR_RETURN(const int64_t count, c.call().Attr<int64_t>(arg.number_attr));
      range.count = static_cast<int>(count);
    } else if (!arg.type_list_attr.empty()) {
      WEFT_ASSIGN_OR_RETURN(const auto types,
                            c.call().Attr<AttrValue::TypeList>(arg.type_list_attr));
      range.count = static_cast<int>(types.size());
    }
    if (arg.name == name) {
      if (range.first + range.count <= c.num_inputs()) return range;
      break;
    }
    range.first += range.count;
  }
  return InvalidArgument(c.call().op(), " has no input '", name, "'");
}

StatusOr<Element> ListInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const InputRange range, InputsNamed(c, name));
  Element list;
  for (int i = 0; i < range.count; ++i) list.push_back(c.input(range.first + i));
  return list;
}

StatusOr<Tensor> OneInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const InputRange range, InputsNamed(c, name));
  if (range.count != 1) return InvalidArgument("Input '", name, "' is a list");
  return c.input(range.first);
}

StatusOr<DatasetRef> DatasetInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const Tensor value, OneInput(c, name));
  return DatasetOf(value);
}

StatusOr<std::vector<DatasetRef>> DatasetListInput(const KernelContext& c, absl::string_view name) {
  WEFT_ASSIGN_OR_RETURN(const Element values, ListInput(c, name));
  std::vector<DatasetRef> datasets;
  for (const Tensor& value : values) {
    WEFT_ASSIGN_OR_RETURN(datasets.emplace_back(), DatasetOf(value));
  }
  return datasets;
}

StatusOr<Seeds> SeedsInput(const KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t first, ScalarInput<int64_t>(c, "seed"));
  WEFT_ASSIGN_OR_RETURN(const int64_t second, ScalarInput<int64_t>(c, "seed2"));
  return Seeds{static_cast<uint64_t>(first), static_cast<uint64_t>(second)};
}

StatusOr<CapturedFunction> FunctionInput(const KernelContext& c, absl::string_view attr,
                                         absl::string_view captured) {
  CapturedFunction result;
  WEFT_ASSIGN_OR_RETURN(result.function, c.call().Attr<FunctionRef>(attr));
  WEFT_ASSIGN_OR_RETURN(result.captured, ListInput(c, captured));
  auto* const functions = dynamic_cast<LibraryOwner*>(c.environment().functions);
  if (functions == nullptr) {
    return FailedPrecondition(c.call().op(), " cannot be called where there is no graph");
  }
  result.library = functions->Library();
  return result;
}

StatusOr<ElementSpec> DeclaredSpec(const KernelContext& c) {
  ElementSpec spec;
  WEFT_ASSIGN_OR_RETURN(spec.types, c.call().Attr<AttrValue::TypeList>("output_types"));
  WEFT_ASSIGN_OR_RETURN(spec.shapes, c.call().Attr<AttrValue::ShapeList>("output_shapes"));
  return spec;
}

StatusOr<int64_t> ParallelCalls(int64_t asked) {
  if (asked == -1) return UsableCores();
  if (asked < 1) return InvalidArgument("num_parallel_calls must be greater than zero.");
  return std::min<int64_t>(asked, 1024);
}

}  // namespace weft::data
