// SPDX-License-Identifier: Apache-2.0
// Ops over int64 that the tests of the executor share, so that it is tested without the real ones.
#pragma once

#include <memory>
#include <utility>

#include "weft/kernel/op_spec.h"

namespace weft::executor::testing {

// Gives its input.
class PassKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};
// Gives its input from another thread, later.
class LaterKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    c.device().threads().Schedule([&c, done = std::move(done)]() mutable {
      c.SetOutput(0, c.input(0));
      done(absl::OkStatus());
    });
  }
};
// Ends when its step does.
class NeverKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    auto shared = std::make_shared<Done>(std::move(done));  // with the cancellation
    Cancellation::Token token = 0;
    if (!c.cancellation().Register(&token, [shared](const Status& s) { (*shared)(s); })) {
      (*shared)(c.cancellation().status());
    }
  }
};
class FailKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return InvalidArgument("Told to fail"); }
};
// The sum of two scalars.
class AddKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    *out->data<int64_t>() = c.input(0).scalar<int64_t>() + c.input(1).scalar<int64_t>();
    return absl::OkStatus();
  }
};
class VariableKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutputVariable(0, variable_);
    return absl::OkStatus();
  }

 private:
  Ref<Variable> variable_ = MakeRef<Variable>("v", DType::kInt64);
};
class AssignKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    WEFT_ASSIGN_OR_RETURN(Tensor copy, c.input(1).Clone());
    variable->Assign(std::move(copy));
    c.SetOutputVariable(0, Ref<Variable>(variable));
    return absl::OkStatus();
  }
};

// An op from int64 to int64.
inline void AddOneToOne(Catalogue& c, const char* name, KernelFactory kernel) {
  c.Add(OpSpec(name).Input("x: int64").Output("y: int64").Kernel(std::move(kernel)));
}

// The ends of graphs.
inline void AddArgumentAndResult(Catalogue& c) {
  c.Add(OpSpec("_Arg")
            .Output("output: T")
            .Attr("T: type")
            .Attr("index: int >= 0")
            .Stateful()
            .Traits({.lowers_to = InstructionKind::kArgument}));
  c.Add(OpSpec("_Retval")
            .Input("input: T")
            .Attr("T: type")
            .Attr("index: int >= 0")
            .Stateful()
            .Traits({.lowers_to = InstructionKind::kResult}));
}

// Variables by reference, and what gives them a value.
inline void AddVariables(Catalogue& c) {
  c.Add(OpSpec("Var").Output("ref: Ref(int64)").Stateful().Kernel(MakeKernel<VariableKernel>()));
  c.Add(OpSpec("Assign")
            .Input("ref: Ref(int64)")
            .Input("value: int64")
            .Output("out: Ref(int64)")
            .AllowsUninitializedInput()
            .Kernel(MakeKernel<AssignKernel>()));
}

}  // namespace weft::executor::testing
