// SPDX-License-Identifier: Apache-2.0
// Python functions in a graph: they live in the client's process, so a server can only say so.
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::py_func {
namespace {

class PyFuncKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string token, c.Attr<std::string>("token"));
    return std::make_unique<PyFuncKernel>(std::move(token));
  }
  explicit PyFuncKernel(std::string token) : token_(std::move(token)) {}

  Status Compute(KernelContext&) override {
    return Unimplemented(
        "callback ", token_,
        " is not found: the Python function lives in the client's process, and a server "
        "cannot call it. Compute the value in the program and feed it, or use ops.");
  }

 private:
  const std::string token_;
};

void Add(Catalogue& catalogue, const char* name, bool stateful, bool eager) {
  OpSpec spec(name);
  spec.Doc(
          "Calls a Python function of the client's process; runs only where that is this process, "
          "which "
          "it never is.")
      .Input("input: Tin")
      .Output("output: Tout")
      .Attr("token: string");
  if (eager) spec.Attr("is_async: bool = false");
  spec.Attr("Tin: list(type) >= 0").Attr("Tout: list(type) >= 0");
  if (stateful) spec.Stateful();
  catalogue.Add(spec.Shape(shapes::Unknown).NoGradient().Kernel(MakeKernel<PyFuncKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add(catalogue, "PyFunc", true, false);
  Add(catalogue, "PyFuncStateless", false, false);
  Add(catalogue, "EagerPyFunc", true, true);
}

}  // namespace weft::ops::control::py_func
