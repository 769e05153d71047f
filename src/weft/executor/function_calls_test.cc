// SPDX-License-Identifier: Apache-2.0
// Kernels that call functions of the library.
#include "weft/executor/function_calls.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/executor/testing/test_ops.h"
#include "weft/graph/builder.h"

namespace weft::executor {
namespace {

using ::testing::HasSubstr;

// f(x, x)
class ApplyKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(FunctionRef function, c.Attr<FunctionRef>("f"));
    return std::make_unique<ApplyKernel>(std::move(function));
  }
  explicit ApplyKernel(FunctionRef function) : function_(std::move(function)) {}
  void ComputeAsync(KernelContext& c, Done done) override {
    c.environment().functions->Run(
        function_, {c.input(0), c.input(0)}, &c.cancellation(),
        [&c, done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
          if (results.ok()) c.SetOutput(0, (*results)[0]);
          done(results.status());
        });
  }

 private:
  const FunctionRef function_;
};

Catalogue* MakeCallingOps() {
  auto* c = new Catalogue();
  testing::AddArgumentAndResult(*c);
  c->Add(OpSpec("Sum2")
             .Input("x: int64")
             .Input("y: int64")
             .Output("z: int64")
             .Kernel(MakeKernel<testing::AddKernel>()));
  testing::AddOneToOne(*c, "Refuse", MakeKernel<testing::FailKernel>());
  testing::AddOneToOne(*c, "WaitForEnd", MakeKernel<testing::NeverKernel>());
  c->Add(OpSpec("Apply")
             .Input("x: int64")
             .Output("y: int64")
             .Attr("f: func")
             .Kernel(MakeKernel<ApplyKernel>()));
  return c;
}

const Catalogue& CallingOps() {
  static const Catalogue* const catalogue = MakeCallingOps();
  return *catalogue;
}

class FunctionCallsTest : public ::testing::Test {
 protected:
  // A function of two numbers whose body is one node that reads `inputs`.
  void AddFunction(const char* name, NodeDef node, const char* returns) {
    FunctionDef f;
    f.signature.name = name;
    for (const char* input : {"a", "b"}) {
      f.signature.inputs.push_back({.name = input, .dtype = DType::kInt64});
    }
    f.signature.outputs.push_back({.name = "out", .dtype = DType::kInt64});
    f.nodes.push_back(std::move(node));
    f.returns["out"] = returns;
    ASSERT_TRUE(graph_.AddFunction(std::move(f)).ok());
  }

  StatusOr<int64_t> Apply(const std::string& function, int64_t x, Cancellation* cancellation) {
    Graph graph = graph_.Clone();
    GraphBuilder b(&graph);
    const Endpoint argument = b.Op("_Arg", {}, {{"T", DType::kInt64}, {"index", 0}});
    const Endpoint applied = b.Op("Apply", {argument}, {{"f", FunctionRef{function, nullptr}}});
    b.AddNode("_Retval", {applied}, {{"index", 0}});
    WEFT_RETURN_IF_ERROR(b.status());
    WEFT_ASSIGN_OR_RETURN(
        const auto plan,
        compile::Plan::Compile(std::move(graph),
                               {.kernels = &CallingOps().kernels(), .device = &device_}));
    PlanRunner runner(plan.get(), &pool_);
    StatusOr<int64_t> out = Internal("not run");
    for (int step = 0; step < 3; ++step) {
      RunRequest request;
      request.environment.device = &device_;
      request.environment.cancellation = cancellation;
      request.arguments.push_back(Tensor::Scalar(x));
      absl::Notification ended;
      runner.Run(std::move(request), [&](Status status, std::vector<Tensor> results) {
        if (status.ok()) {
          out = results[0].scalar<int64_t>();
        } else {
          out = std::move(status);
        }
        ended.Notify();
      });
      ended.WaitForNotification();
    }
    return out;
  }
  StatusOr<int64_t> Apply(const std::string& function, int64_t x) {
    Cancellation cancellation;
    return Apply(function, x, &cancellation);
  }

  ThreadPool pool_{"test", 2};
  Device device_{{.name = "/job:localhost/replica:0/task:0/device:CPU:0", .type = "CPU"},
                 &HostAllocator(),
                 &pool_};
  Graph graph_{&CallingOps().ops()};
};

TEST_F(FunctionCallsTest, AKernelCallsAFunctionOfTheLibrary) {
  AddFunction("twice", {.name = "sum", .op = "Sum2", .inputs = {"a", "b"}}, "sum:z:0");
  EXPECT_EQ(*Apply("twice", 21), 42);
}

TEST_F(FunctionCallsTest, AFunctionMayCallAnother) {
  AddFunction("twice", {.name = "sum", .op = "Sum2", .inputs = {"a", "b"}}, "sum:z:0");
  NodeDef call{.name = "call", .op = "Apply", .inputs = {"a"}};
  call.attrs["f"] = FunctionRef{"twice", nullptr};
  AddFunction("outer", std::move(call), "call:y:0");
  EXPECT_EQ(*Apply("outer", 5), 10);
}

TEST_F(FunctionCallsTest, ErrorsNameTheFunction) {
  EXPECT_THAT(std::string(Apply("nowhere", 1).status().message()),
              HasSubstr("Function 'nowhere' is not defined"));
  AddFunction("refuses", {.name = "no", .op = "Refuse", .inputs = {"a"}}, "no:y:0");
  const Status refused = Apply("refuses", 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Function 'refuses'"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Told to fail"));
  AddFunction("odd", {.name = "odd", .op = "Strange", .inputs = {"a"}}, "odd:y:0");
  EXPECT_THAT(std::string(Apply("odd", 1).status().message()), HasSubstr("Function 'odd'"));
}

TEST_F(FunctionCallsTest, CancellingTheStepEndsAFunctionThatWaits) {
  AddFunction("waits", {.name = "wait", .op = "WaitForEnd", .inputs = {"a"}}, "wait:y:0");
  Cancellation cancellation;
  Thread canceller("canceller", [&] {
    absl::SleepFor(absl::Milliseconds(20));
    cancellation.Cancel(Cancelled("Enough"));
  });
  EXPECT_THAT(std::string(Apply("waits", 1, &cancellation).status().message()),
              HasSubstr("Enough"));
}

}  // namespace
}  // namespace weft::executor
