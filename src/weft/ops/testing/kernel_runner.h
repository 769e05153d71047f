// SPDX-License-Identifier: Apache-2.0
// Runs one kernel of the catalogue without a session: what the tests of ops stand on.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/shape_inference.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/catalogue.h"

namespace weft::ops::testing {

// One argument of the op under test: a tensor, a list of them, or a reference variable.
struct TestInput {
  TestInput(Tensor tensor) : tensors{std::move(tensor)} {}  // NOLINT(google-explicit-constructor)
  TestInput(std::vector<Tensor> list)                       // NOLINT(google-explicit-constructor)
      : tensors(std::move(list)), is_list(true) {}
  TestInput(Ref<Variable> v) : variable(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  std::vector<Tensor> tensors;
  bool is_list = false;
  Ref<Variable> variable;
};

// The catalogue with sources that stand for the inputs of the op under test.
inline const Catalogue& TestCatalogue() {
  static const Catalogue* const catalogue = [] {
    auto* filled = new Catalogue();
    RegisterOps(*filled);
    filled->Add(OpSpec("TestInput").Doc("A test's input.").Output("value: T").Attr("T: type"));
    filled->Add(OpSpec("TestRef").Doc("A test's variable.").Output("ref: Ref(T)").Attr("T: type"));
    return filled;
  }();
  return *catalogue;
}

// A CPU with two threads and resources of its own.
class TestDevice {
 public:
  TestDevice() : threads_("test", 2) {
    DeviceName task{.job = "localhost", .replica = 0, .task = 0, .type = {}, .index = {}};
    device_ = MakeCpuDevice(task, 0, &threads_);
  }
  Device* get() { return device_.get(); }

 private:
  ThreadPool threads_;
  std::unique_ptr<Device> device_;
};

// A node with its kernel. Run gives the outputs of one step; state of the kernel and of the device
// lives from run to run. Also checks that what the shape function says fits the outputs.
class KernelRunner {
 public:
  static StatusOr<std::unique_ptr<KernelRunner>> Make(absl::string_view op,
                                                      std::vector<TestInput> inputs,
                                                      AttrMap attrs = {}) {
    auto runner = std::unique_ptr<KernelRunner>(new KernelRunner());
    WEFT_RETURN_IF_ERROR(runner->Build(op, std::move(inputs), std::move(attrs)));
    return runner;
  }

  StatusOr<std::vector<Tensor>> Run() {
    absl::Notification ready;
    Status status;
    kernel_->ComputeAsync(context_, [&](Status s) {
      status = std::move(s);
      ready.Notify();
    });
    ready.WaitForNotification();
    WEFT_RETURN_IF_ERROR(status);
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Value& value = outputs_[i];
      outputs.push_back(value.variable ? Tensor() : value.tensor);
      if (value.variable || value.is_dead) continue;
      if (value.tensor.dtype() != node_->output_type(static_cast<int>(i)).dtype) {
        return Internal("Output ", i, " has dtype ", DTypeName(value.tensor.dtype()));
      }
      if (!inferred_[i].IsCompatibleWith(value.tensor.shape())) {
        return Internal("Output ", i, " has shape ", value.tensor.shape().ToString(),
                        ", the shape function says ", inferred_[i].ToString());
      }
    }
    return outputs;
  }

  void set_input(int i, Tensor tensor) { input_values_[i].tensor = std::move(tensor); }
  void set_last_use(int i) { context_.binding().input_is_last_use[i] = true; }
  const std::vector<PartialShape>& inferred() const { return inferred_; }
  KernelContext& context() { return context_; }
  OpKernel& kernel() { return *kernel_; }
  const Node& node() const { return *node_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  Device& device() { return *device_.get(); }
  Cancellation& cancellation() { return cancellation_; }
  StepEnvironment& environment() { return environment_; }

 private:
  KernelRunner() : graph_(&TestCatalogue().ops()) {}

  Status Build(absl::string_view op, std::vector<TestInput> inputs, AttrMap attrs) {
    WEFT_RETURN_IF_ERROR(TestCatalogue().status());
    GraphBuilder builder(&graph_);
    std::vector<Argument> arguments;
    for (TestInput& input : inputs) {
      std::vector<Endpoint> sources;
      if (input.variable) {
        sources.push_back(builder.Op("TestRef", {}, {{"T", input.variable->dtype()}}));
        input_values_.push_back({.tensor = {}, .variable = input.variable});
      }
      for (Tensor& tensor : input.tensors) {
        sources.push_back(builder.Op("TestInput", {}, {{"T", tensor.dtype()}}));
        input_values_.push_back({.tensor = std::move(tensor), .variable = {}});
      }
      arguments.push_back(input.is_list ? Argument(sources) : Argument(sources[0]));
    }
    node_ = builder.AddNode(op, arguments, std::move(attrs), "tested");
    WEFT_RETURN_IF_ERROR(builder.status());
    WEFT_RETURN_IF_ERROR(InferAll());
    WEFT_ASSIGN_OR_RETURN(const KernelDef* def,
                          TestCatalogue().kernels().Find(node_->call(), "CPU"));
    KernelConstruction construction(node_->call(), device_.get());
    WEFT_ASSIGN_OR_RETURN(kernel_, def->factory(construction));
    Bind();
    return absl::OkStatus();
  }

  Status InferAll() {
    std::vector<PartialShape> shapes;
    std::vector<const Tensor*> constants;
    for (const Value& value : input_values_) {
      shapes.push_back(value.variable ? PartialShape() : PartialShape(value.tensor.shape()));
      constants.push_back(value.variable ? nullptr : &value.tensor);
    }
    WEFT_ASSIGN_OR_RETURN(inferred_, InferShapes(*node_, shapes, constants));
    return absl::OkStatus();
  }

  void Bind() {
    outputs_.resize(node_->num_outputs());
    KernelContext::Binding binding{.call = &node_->call()};
    for (int i = 0; i < node_->num_inputs(); ++i) {
      Value& value = input_values_[i];
      if (value.variable && !node_->input_type(i).is_ref) {
        StatusOr<Tensor> snapshot = value.variable->Read();
        if (snapshot.ok()) value.tensor = *std::move(snapshot);
      }
      binding.inputs.push_back(&value.tensor);
      binding.input_values.push_back(&value);
    }
    for (Value& value : outputs_) binding.outputs.push_back(&value);
    binding.input_is_last_use.assign(node_->num_inputs(), false);
    context_ = KernelContext(std::move(binding));
    environment_.step_id = 1;
    environment_.device = device_.get();
    environment_.cancellation = &cancellation_;
    environment_.step_resources = &step_resources_;
    context_.set_environment(&environment_);
  }

  TestDevice device_;
  Graph graph_;
  Node* node_ = nullptr;
  std::vector<Value> input_values_;
  std::vector<Value> outputs_;
  std::vector<PartialShape> inferred_;
  std::unique_ptr<OpKernel> kernel_;
  KernelContext context_;
  StepEnvironment environment_;
  Cancellation cancellation_;
  ResourceManager step_resources_;
};

// Runs `op` once.
inline StatusOr<std::vector<Tensor>> RunOp(absl::string_view op, std::vector<TestInput> inputs,
                                           AttrMap attrs = {}) {
  WEFT_ASSIGN_OR_RETURN(auto runner, KernelRunner::Make(op, std::move(inputs), std::move(attrs)));
  return runner->Run();
}

}  // namespace weft::ops::testing
