// SPDX-License-Identifier: Apache-2.0
// Ops that end a step when something is wrong: Assert and CheckNumerics.
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/summarize_kernel.h"

namespace weft::ops::control::check {
namespace {

class AssertKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t summarize, c.Attr<int64_t>("summarize"));
    return std::make_unique<AssertKernel>(summarize);
  }
  explicit AssertKernel(int64_t summarize) : summarize_(summarize) {}
  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) {
      return InvalidArgument("In[0] should be a scalar: ", c.input(0).shape().ToString());
    }
    if (*c.input(0).data<bool>()) return absl::OkStatus();
    std::string message = "assertion failed: ";
    for (int i = 1; i < c.num_inputs(); ++i) {
      absl::StrAppend(&message, i > 1 ? " " : "", "[", Summarize(c.input(i), summarize_), "]");
    }
    return InvalidArgument(message);
  }

 private:
  const int64_t summarize_;
};

class CheckNumericsKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string message, c.Attr<std::string>("message"));
    return std::make_unique<CheckNumericsKernel>(std::move(message));
  }
  explicit CheckNumericsKernel(std::string message) : message_(std::move(message)) {}
  Status Compute(KernelContext& c) override {
    bool has_inf = false;
    bool has_nan = false;
    VisitDType(c.input_dtype(0), RealFloats(), [&]<typename T>() {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (const T& x : c.input(0).span<T>()) {
        const Wide wide = static_cast<Wide>(x);
        has_inf = has_inf || std::isinf(wide);
        has_nan = has_nan || std::isnan(wide);
      }
    });
    if (has_inf || has_nan) {
      return InvalidArgument(message_, " : Tensor had ",
                             has_inf && has_nan ? "Inf and NaN"
                             : has_inf          ? "Inf"
                                                : "NaN",
                             " values");
    }
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }

 private:
  const std::string message_;
};

// Tells infinities by their sign.
class CheckNumericsV2Kernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string message, c.Attr<std::string>("message"));
    return std::make_unique<CheckNumericsV2Kernel>(std::move(message));
  }
  explicit CheckNumericsV2Kernel(std::string message) : message_(std::move(message)) {}
  Status Compute(KernelContext& c) override {
    bool has_negative_inf = false, has_inf = false, has_nan = false;
    VisitDType(c.input_dtype(0), RealFloats(), [&]<typename T>() {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (const T& x : c.input(0).span<T>()) {
        const Wide wide = static_cast<Wide>(x);
        has_negative_inf = has_negative_inf || (std::isinf(wide) && wide < 0);
        has_inf = has_inf || (std::isinf(wide) && wide > 0);
        has_nan = has_nan || std::isnan(wide);
      }
    });
    std::vector<absl::string_view> found;
    if (has_negative_inf) found.push_back("-Inf");
    if (has_inf) found.push_back("+Inf");
    if (has_nan) found.push_back("NaN");
    if (!found.empty()) {
      return InvalidArgument(message_, " : Tensor had ", absl::StrJoin(found, " and "), " values");
    }
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }

 private:
  const std::string message_;
};

Status CheckNumericsGradient(GradientContext& c) {
  c.set_input(
      0,
      c.Op(c.node().op(), {c.gradient()},
           {{"message",
             "Not a number (NaN) or infinity (Inf) values detected in gradient. Please check the "
             "operations that made it."}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Assert")
                    .Doc("InvalidArgument, showing `data`, unless `condition` holds.")
                    .Input("condition: bool")
                    .HostInput("condition")
                    .Input("data: T")
                    .HostInput("data")
                    .Attr("T: list(type) >= 1")
                    .Attr("summarize: int = 3")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<AssertKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("CheckNumerics")
          .Doc("Returns `tensor`; InvalidArgument with `message` if an element is infinite or NaN.")
          .Input("tensor: T")
          .Output("output: T")
          .Attr("T: {bfloat16, half, float, double}")
          .Attr("message: string")
          .Stateful()
          .Shape(shapes::SameAsInput)
          .Gradient(CheckNumericsGradient)
          .Kernel(MakeKernel<CheckNumericsKernel>()));
  catalogue.Add(
      OpSpec("CheckNumericsV2")
          .Doc("Returns `tensor`; InvalidArgument with `message` if an element is infinite or NaN, "
               "which tells -Inf from +Inf.")
          .Input("tensor: T")
          .Output("output: T")
          .Attr("T: {bfloat16, half, float, double}")
          .Attr("message: string")
          .Stateful()
          .Shape(shapes::SameAsInput)
          .Gradient(CheckNumericsGradient)
          .Kernel(MakeKernel<CheckNumericsV2Kernel>()));
}

}  // namespace weft::ops::control::check
