// SPDX-License-Identifier: Apache-2.0
// RemoteCall: a function that runs on a device named by a tensor. Where that tensor is a constant
// the compiler makes a call on that device of it (compile/remote_calls.cc), whatever task has it;
// the kernel is for names that are known only in the step.
#include <memory>

#include "weft/graph/device_name.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::control::remote_call {
namespace {

class RemoteCallKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(FunctionRef function, c.Attr<FunctionRef>("f"));
    return std::make_unique<RemoteCallKernel>(std::move(function));
  }
  explicit RemoteCallKernel(FunctionRef function) : function_(std::move(function)) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    if (Status s = CheckTarget(c); !s.ok()) {
      done(std::move(s));
      return;
    }
    if (c.environment().functions == nullptr) {
      done(FailedPrecondition("RemoteCall cannot be called where there is no graph"));
      return;
    }
    std::vector<Tensor> arguments;
    for (int i = 1; i < c.num_inputs(); ++i) arguments.push_back(c.input(i));
    c.environment().functions->Run(
        function_, std::move(arguments), &c.cancellation(),
        [&c, done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
          if (results.ok() && static_cast<int>(results->size()) != c.num_outputs()) {
            results = InvalidArgument("The function gives ", results->size(), " values, expected ",
                                      c.num_outputs());
          }
          if (results.ok()) {
            for (int i = 0; i < c.num_outputs(); ++i) {
              c.SetOutput(i, std::move((*results)[static_cast<size_t>(i)]));
            }
          }
          done(results.status());
        });
  }

 private:
  static Status CheckTarget(KernelContext& c) {
    if (c.input(0).num_elements() != 1) {
      return InvalidArgument("`target` must be one device's name, got shape ",
                             c.input(0).shape().ToString());
    }
    const std::string& target = *c.input(0).data<std::string>();
    WEFT_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(target));
    WEFT_ASSIGN_OR_RETURN(const DeviceName here, DeviceName::Parse(c.device().name()));
    if (wanted.Matches(here)) return absl::OkStatus();
    return Unimplemented("A call from ", c.device().name(), " to '", target,
                         "', a name that was computed in the step: only a constant `target` may be "
                         "another device");
  }

  const FunctionRef function_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RemoteCall")
                    .Doc("Runs the function `f` on `args`, on the device that `target` names.")
                    .Input("target: string")
                    .Input("args: Tin")
                    .Output("output: Tout")
                    .Attr("Tin: list(type) >= 1")
                    .Attr("Tout: list(type) >= 1")
                    .Attr("f: func")
                    .Stateful()
                    .Traits({.names_device = true})
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<RemoteCallKernel>()));
}

}  // namespace weft::ops::control::remote_call
