// SPDX-License-Identifier: Apache-2.0
// What is computed of a dataset within one step: its only element, a reduction, facts about it.
#include <utility>

#include "weft/data/dataset_op.h"
#include "weft/data/run_apart.h"

namespace weft::data::consume {
namespace {

class SingleElementKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    RunApart(
        c, [&c]() { return Work(c); }, std::move(done));
  }

 private:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const IteratorPtr iterator,
                          dataset->MakeIterator(IteratorContext::OfStep(c)));
    Element element, more;
    WEFT_ASSIGN_OR_RETURN(const bool found, iterator->Next(&element));
    if (!found) return InvalidArgument("Dataset was empty.");
    if (static_cast<int>(element.size()) != c.num_outputs()) {
      return InvalidArgument("The element has ", element.size(), " components, expected ",
                             c.num_outputs());
    }
    WEFT_ASSIGN_OR_RETURN(const bool has_more, iterator->Next(&more));
    if (has_more) return InvalidArgument("Dataset had more than one element.");
    for (int i = 0; i < c.num_outputs(); ++i) {
      if (element[static_cast<size_t>(i)].dtype() != c.output_dtype(i)) {
        return InvalidArgument("Data type mismatch at component ", i);
      }
      c.SetOutput(i, std::move(element[static_cast<size_t>(i)]));
    }
    return absl::OkStatus();
  }
};

class ReduceKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    RunApart(
        c, [&c]() { return Work(c); }, std::move(done));
  }

 private:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetInput(c));
    WEFT_ASSIGN_OR_RETURN(Element state, ListInput(c, "initial_state"));
    WEFT_ASSIGN_OR_RETURN(const CapturedFunction reduce, FunctionInput(c, "f", "other_arguments"));
    const ContextPtr context = IteratorContext::OfStep(c);
    WEFT_ASSIGN_OR_RETURN(const IteratorPtr iterator, dataset->MakeIterator(context));
    while (true) {
      Element element;
      WEFT_ASSIGN_OR_RETURN(const bool found, iterator->Next(&element));
      if (!found) break;
      Element arguments = std::move(state);
      for (Tensor& tensor : element) arguments.push_back(std::move(tensor));
      StatusOr<Element> next = context->CallAndWait(reduce, std::move(arguments));
      if (!next.ok()) {
        if (!absl::IsOutOfRange(next.status())) return next.status();
        return InvalidArgument("Function invocation produced OutOfRangeError: ",
                               next.status().message());
      }
      state = *std::move(next);
    }
    if (static_cast<int>(state.size()) != c.num_outputs()) {
      return InvalidArgument("The number of components of the state is ", state.size(),
                             ", expected ", c.num_outputs());
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      Tensor& tensor = state[static_cast<size_t>(i)];
      if (tensor.dtype() != c.output_dtype(i)) {
        return InvalidArgument("Data type mismatch at component ", i, ": expected ",
                               DTypeName(c.output_dtype(i)), " but got ", DTypeName(tensor.dtype()),
                               ".");
      }
      c.SetOutput(i, std::move(tensor));
    }
    return absl::OkStatus();
  }
};

class ElementAtKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    RunApart(
        c, [&c]() { return Work(c); }, std::move(done));
  }

 private:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const int64_t index, ScalarInput<int64_t>(c, "index"));
    WEFT_ASSIGN_OR_RETURN(Element element, dataset->At(IteratorContext::OfStep(c), index));
    if (static_cast<int>(element.size()) != c.num_outputs()) {
      return InvalidArgument("The element has ", element.size(), " components, expected ",
                             c.num_outputs());
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      if (element[static_cast<size_t>(i)].dtype() != c.output_dtype(i)) {
        return InvalidArgument("Data type mismatch at component ", i);
      }
      c.SetOutput(i, std::move(element[static_cast<size_t>(i)]));
    }
    return absl::OkStatus();
  }
};

class CardinalityKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    c.SetOutput(0, Tensor::Scalar(dataset->Cardinality()));
    return absl::OkStatus();
  }
};

// The options that stand on the way down the first inputs, joined: protobuf merges messages that
// follow each other, later ones win.
class OptionsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    std::string all;
    for (const Dataset* at = dataset.get(); at != nullptr; at = at->input()) {
      if (at->options() != nullptr) all = *at->options() + all;
    }
    c.SetOutput(0, Tensor::Scalar(std::move(all)));
    return absl::OkStatus();
  }
};

class SameKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};

Status ElementShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto shapes, c.Attr<AttrValue::ShapeList>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

void RegisterResults(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("DatasetToSingleElement")
          .Doc("The only element of a dataset. InvalidArgument if there is none or another one.")
          .Input("dataset: variant")
          .Output("components: output_types")
          .Attr("output_types: list(type) >= 1")
          .Attr("output_shapes: list(shape) >= 1")
          .Attr("metadata: string = ''")
          .Stateful()
          .Shape(ElementShape)
          .NoGradient()
          .Kernel(MakeKernel<SingleElementKernel>()));
  catalogue.Add(OpSpec("ReduceDataset")
                    .Doc("The state after `f` was called with the state and each element in turn.")
                    .Input("input_dataset: variant")
                    .Input("initial_state: Tstate")
                    .Input("other_arguments: Targuments")
                    .Output("components: output_types")
                    .Attr("f: func")
                    .Attr("Tstate: list(type) >= 1")
                    .Attr("Targuments: list(type) >= 0")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Attr("use_inter_op_parallelism: bool = true")
                    .Attr("metadata: string = ''")
                    .Stateful()
                    .Shape(ElementShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ReduceKernel>()));
  catalogue.Add(OpSpec("GetElementAtIndex")
                    .Doc("Element `index` of a dataset. OutOfRange if there are fewer.")
                    .Input("dataset: variant")
                    .Input("index: int64")
                    .Output("components: output_types")
                    .Attr("output_types: list(type) >= 1")
                    .Attr("output_shapes: list(shape) >= 1")
                    .Shape(ElementShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ElementAtKernel>()));
}

void RegisterFacts(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DatasetCardinality")
                    .Doc("How many elements there are: -1 without end, -2 if that is not known.")
                    .Input("input_dataset: variant")
                    .Output("cardinality: int64")
                    .Attr("cardinality_options: string = ''")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CardinalityKernel>()));
  catalogue.Add(OpSpec("ExperimentalDatasetCardinality")
                    .Doc("DatasetCardinality under its first name.")
                    .Input("input_dataset: variant")
                    .Output("cardinality: int64")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CardinalityKernel>()));
  catalogue.Add(OpSpec("GetOptions")
                    .Doc("The options of a dataset, as a message of dataset_options.proto.")
                    .Input("input_dataset: variant")
                    .Output("serialized_options: string")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<OptionsKernel>()));
  catalogue.Add(OpSpec("WrapDatasetVariant")
                    .Doc("The same variant: it goes wherever one may.")
                    .Input("input_handle: variant")
                    .Output("output_handle: variant")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SameKernel>()));
  catalogue.Add(OpSpec("UnwrapDatasetVariant")
                    .Doc("The same variant: it goes wherever one may.")
                    .Input("input_handle: variant")
                    .Output("output_handle: variant")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SameKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterResults(catalogue);
  RegisterFacts(catalogue);
}

}  // namespace weft::data::consume
