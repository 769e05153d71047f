// SPDX-License-Identifier: Apache-2.0
// Pipelines as graphs and back, and their fingerprints.
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "weft/data/dataset_graph.h"
#include "weft/data/dataset_op.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/kernel/function_library.h"
#include "weft/kernel/make_op_kernel.h"
#include "weft/ops/catalogue.h"
#include "weft/ops/pipeline/fingerprint_kernel.h"

namespace weft::ops::pipeline::graph {
namespace {

// external_state_policy, and allow_stateful of the first op.
constexpr int64_t kFail = 2;

class ToGraphKernel final : public OpKernel {
 public:
  explicit ToGraphKernel(KernelConstruction& c)
      : state_(c.AttrOr<int64_t>("external_state_policy", 0) == kFail
                   ? weft::data::StateInGraph::kRefuse
                   : weft::data::StateInGraph::kName) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const weft::data::DatasetRef dataset, weft::data::DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const GraphDef graph, weft::data::GraphOf(*dataset, state_));
    WEFT_ASSIGN_OR_RETURN(std::string bytes, SerializeGraphDef(graph));
    c.SetOutput(0, Tensor::Scalar(std::move(bytes)));
    return absl::OkStatus();
  }

 private:
  const weft::data::StateInGraph state_;
};

class FingerprintKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const weft::data::DatasetRef dataset, weft::data::DatasetOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const uint64_t fingerprint, FingerprintOf(*dataset));
    c.SetOutput(0, Tensor::Scalar(fingerprint));
    return absl::OkStatus();
  }
};

// The functions that stand in the graph of a pipeline, for the datasets that call them later.
class OwnFunctions final : public FunctionRunner, public LibraryOwner {
 public:
  explicit OwnFunctions(std::shared_ptr<const FunctionLibrary> library)
      : library_(std::move(library)) {}
  void Run(const FunctionRef& function, std::vector<Tensor>, Cancellation*, Done done) override {
    done(FailedPrecondition("Function '", function.name, "' is called while its dataset is made"));
  }
  std::shared_ptr<const FunctionLibrary> Library() override { return library_; }

 private:
  const std::shared_ptr<const FunctionLibrary> library_;
};

// Makes the nodes of a pipeline one after another: constants and datasets, which wait for nothing.
class FromGraphKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) return InvalidArgument("`graph_def` must be a scalar");
    WEFT_ASSIGN_OR_RETURN(GraphDef def, ParseGraphDef(c.input(0).scalar<std::string>()));
    Graph graph(&StandardCatalogue().ops());
    WEFT_RETURN_IF_ERROR(ImportGraph(std::move(def), {.allow_internal = true}, &graph));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> nodes, graph.TopologicalOrder());
    StepEnvironment environment = c.environment();
    std::unique_ptr<OwnFunctions> functions;
    if (!graph.functions().empty()) {
      auto* const owner = dynamic_cast<LibraryOwner*>(environment.functions);
      if (owner == nullptr) {
        return FailedPrecondition("DatasetFromGraph cannot be called where there is no graph");
      }
      functions = std::make_unique<OwnFunctions>(owner->Library()->WithFunctionsOf(graph));
      environment.functions = functions.get();
    }
    absl::flat_hash_map<Endpoint, Tensor> values;
    for (const Node* node : nodes) {
      std::vector<Tensor> inputs;
      for (const Endpoint& input : node->inputs()) {
        const auto found = values.find(input);
        if (found == values.end()) {
          return InvalidArgument("Node '", node->name(), "' reads what is not made");
        }
        inputs.push_back(found->second);
      }
      if (node->LowersTo(InstructionKind::kResult)) {
        WEFT_RETURN_IF_ERROR(weft::data::DatasetOf(inputs[0]).status());
        c.SetOutput(0, std::move(inputs[0]));
        return absl::OkStatus();
      }
      WEFT_RETURN_IF_ERROR(Annotate(Make(environment, *node, inputs, &values), node->name()));
    }
    return InvalidArgument("The graph has no _Retval node that names its dataset");
  }

 private:
  static Status Make(const StepEnvironment& environment, const Node& node,
                     const std::vector<Tensor>& inputs,
                     absl::flat_hash_map<Endpoint, Tensor>* values) {
    WEFT_ASSIGN_OR_RETURN(const KernelDef* def,
                          StandardCatalogue().kernels().Find(node.call(), "CPU"));
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel,
                          MakeOpKernel(*def, node.call(), environment.device));
    if (kernel->is_async()) {
      return InvalidArgument("Op ", node.op(), " may not stand in the graph of a dataset");
    }
    std::vector<Value> given(inputs.size()), made(static_cast<size_t>(node.num_outputs()));
    KernelContext::Binding binding;
    binding.call = &node.call();
    for (size_t i = 0; i < inputs.size(); ++i) {
      given[i].tensor = inputs[i];
      binding.inputs.push_back(&given[i].tensor);
      binding.input_values.push_back(&given[i]);
      binding.input_is_last_use.push_back(false);
    }
    for (Value& value : made) binding.outputs.push_back(&value);
    KernelContext context(std::move(binding));
    context.set_environment(&environment);
    WEFT_RETURN_IF_ERROR(kernel->Compute(context));
    for (int i = 0; i < node.num_outputs(); ++i) {
      values->emplace(Endpoint{const_cast<Node*>(&node), i},
                      std::move(made[static_cast<size_t>(i)].tensor));
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DatasetToGraph")
                    .Doc("The pipeline of a dataset as a serialized GraphDef, whose last node is "
                         "a _Retval of the dataset.\nUnimplemented where a part of it was not made "
                         "by an op.")
                    .Input("input_dataset: variant")
                    .Output("graph: string")
                    .Attr("stateful_whitelist: list(string) >= 0 = []")
                    .Attr("allow_stateful: bool = false")
                    .Attr("strip_device_assignment: bool = false")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ToGraphKernel>()));
  catalogue.Add(OpSpec("DatasetToGraphV2")
                    .Doc("The pipeline of a dataset as a serialized GraphDef, whose last node is "
                         "a _Retval of the dataset.\nexternal_state_policy: 2 refuses datasets "
                         "that depend on resources; else these are left out.")
                    .Input("input_dataset: variant")
                    .Output("graph: string")
                    .Attr("external_state_policy: int = 0")
                    .Attr("strip_device_assignment: bool = false")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<ToGraphKernel>()));
  catalogue.Add(OpSpec("DatasetFromGraph")
                    .Doc("The dataset of a graph that DatasetToGraph gave. The functions that it "
                         "calls are those of that graph, or, where it has none, of the one that "
                         "this node stands in.")
                    .Input("graph_def: string")
                    .Output("handle: variant")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FromGraphKernel>()));
  catalogue.Add(OpSpec("DatasetFingerprint")
                    .Doc("A number that is equal for equal pipelines.")
                    .Input("input_dataset: variant")
                    .Output("fingerprint: uint64")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<FingerprintKernel>()));
}

}  // namespace weft::ops::pipeline::graph
