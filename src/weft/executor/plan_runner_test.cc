// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/plan_runner.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/executor/testing/test_ops.h"
#include "weft/graph/builder.h"

namespace weft::executor {
namespace {

using ::testing::HasSubstr;

class LessKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    *out->data<bool>() = c.input(0).scalar<int64_t>() < c.input(1).scalar<int64_t>();
    return absl::OkStatus();
  }
};
// Has its output, and ends only when a LetGo of its step says so; fails if somebody took the
// output.
struct Held {
  absl::Notification begun;
  KernelContext* context = nullptr;
  OpKernel::Done done;
};
std::unique_ptr<Held> held;  // made by the test
class HoldKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    c.SetOutput(0, c.input(0));
    held->context = &c;
    held->done = std::move(done);
    held->begun.Notify();
  }
};
class LaterThanHoldKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done done) override {
    c.device().threads().Schedule([&c, done = std::move(done)]() mutable {
      held->begun.WaitForNotificationWithTimeout(absl::Seconds(60));
      c.SetOutput(0, c.input(0));
      done(absl::OkStatus());
    });
  }
};
class LetGoKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const bool is_there = held->context->binding().outputs[0]->tensor.IsInitialized();
    held->done(is_there ? absl::OkStatus() : Internal("The output was taken away"));
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
};
class IncrementKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    c.SetOutputVariable(0, Ref<Variable>(variable));
    return variable->Update([](Tensor& value) {
      ++*value.data<int64_t>();
      return absl::OkStatus();
    });
  }
};
Catalogue* MakeCatalogue() {
  auto* c = new Catalogue();
  const auto op = [](const char* name) { return OpSpec(name); };
  testing::AddArgumentAndResult(*c);
  testing::AddVariables(*c);
  c->Add(op("Add")
             .Input("x: int64")
             .Input("y: int64")
             .Output("z: int64")
             .Kernel(MakeKernel<testing::AddKernel>()));
  c->Add(op("Less")
             .Input("x: int64")
             .Input("y: int64")
             .Output("z: bool")
             .Kernel(MakeKernel<LessKernel>()));
  testing::AddOneToOne(*c, "Fail", MakeKernel<testing::FailKernel>());
  testing::AddOneToOne(*c, "Later", MakeKernel<testing::LaterKernel>());
  testing::AddOneToOne(*c, "Never", MakeKernel<testing::NeverKernel>());
  testing::AddOneToOne(*c, "Hold", MakeKernel<HoldKernel>());
  testing::AddOneToOne(*c, "LaterThanHold", MakeKernel<LaterThanHoldKernel>());
  testing::AddOneToOne(*c, "LetGo", MakeKernel<LetGoKernel>());
  testing::AddOneToOne(*c, "Pass", MakeKernel<testing::PassKernel>());
  c->Add(op("Increment")
             .Input("ref: Ref(int64)")
             .Output("out: Ref(int64)")
             .Kernel(MakeKernel<IncrementKernel>()));
  c->Add(op("Switch")
             .Input("data: T")
             .Input("pred: bool")
             .Output("output_false: T")
             .Output("output_true: T")
             .Attr("T: type")
             .Traits({.lowers_to = InstructionKind::kSwitch}));
  c->Add(op("Merge")
             .Input("inputs: N * T")
             .Output("output: T")
             .Output("value_index: int32")
             .Attr("T: type")
             .Attr("N: int >= 1")
             .Traits({.lowers_to = InstructionKind::kMerge}));
  c->Add(op("If")
             .Input("cond: Tcond")
             .Input("input: Tin")
             .Output("output: Tout")
             .Attr("Tcond: type")
             .Attr("Tin: list(type) >= 0")
             .Attr("Tout: list(type) >= 0")
             .Attr("then_branch: func")
             .Attr("else_branch: func")
             .Traits({.lowers_to = InstructionKind::kBranch})
             .Stateful());
  c->Add(op("While")
             .Input("input: T")
             .Output("output: T")
             .Attr("T: list(type) >= 0")
             .Attr("cond: func")
             .Attr("body: func")
             .Traits({.lowers_to = InstructionKind::kLoop})
             .Stateful());
  return c;
}

class PlanRunnerTest : public ::testing::Test {
 protected:
  PlanRunnerTest() : builder_(&graph_) {}

  Endpoint Arg(int index) {
    return builder_.Op("_Arg", {}, {{"T", DType::kInt64}, {"index", index}});
  }
  void Result(Endpoint e, int index) { builder_.AddNode("_Retval", {e}, {{"index", index}}); }

  // f(x) = x + x, less(x, limit...) by hand, as functions of the library.
  void AddFunction(const char* name, std::vector<const char*> inputs, DType result, NodeDef node,
                   const char* returns) {
    FunctionDef f;
    f.signature.name = name;
    for (const char* input : inputs) {
      f.signature.inputs.push_back({.name = input, .dtype = DType::kInt64});
    }
    f.signature.outputs.push_back({.name = "out", .dtype = result});
    f.nodes.push_back(std::move(node));
    f.returns["out"] = returns;
    ASSERT_TRUE(graph_.AddFunction(std::move(f)).ok());
  }

  Status Compile() {
    WEFT_RETURN_IF_ERROR(builder_.status());
    WEFT_ASSIGN_OR_RETURN(
        plan_, compile::Plan::Compile(graph_.Clone(),
                                      {.kernels = &catalogue_->kernels(), .device = &device_}));
    runner_ = std::make_unique<PlanRunner>(plan_.get(), &pool_);
    return absl::OkStatus();
  }

  StatusOr<std::vector<Tensor>> Run(std::vector<int64_t> arguments,
                                    Cancellation* parent = nullptr) {
    Cancellation cancellation(parent);
    RunRequest request;
    request.environment.device = &device_;
    request.environment.cancellation = &cancellation;
    for (int64_t value : arguments) request.arguments.push_back(Tensor::Scalar(value));
    absl::Notification ended;
    StatusOr<std::vector<Tensor>> out = Internal("not run");
    runner_->Run(std::move(request), [&](Status status, std::vector<Tensor> results) {
      out = status.ok() ? StatusOr<std::vector<Tensor>>(std::move(results)) : status;
      ended.Notify();
    });
    ended.WaitForNotification();
    return out;
  }
  int64_t RunOne(std::vector<int64_t> arguments) {
    StatusOr<std::vector<Tensor>> out = Run(std::move(arguments));
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() && !out->empty() ? (*out)[0].scalar<int64_t>() : -1;
  }

  static const Catalogue* catalogue_;
  ThreadPool pool_{"test", 2};
  Device device_{DeviceAttributes{.name = "/job:j/replica:0/task:0/device:CPU:0", .type = "CPU"},
                 &HostAllocator(), &pool_};
  Graph graph_{&catalogue_->ops()};
  GraphBuilder builder_;
  std::unique_ptr<compile::Plan> plan_;
  std::unique_ptr<PlanRunner> runner_;
};
const Catalogue* PlanRunnerTest::catalogue_ = MakeCatalogue();

TEST_F(PlanRunnerTest, RunsAStraightLineAgainAndAgain) {
  Endpoint sum = builder_.Op("Add", {Arg(0), Arg(1)});
  Result(builder_.Op("Add", {sum, sum}), 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_TRUE(plan_->is_straight_line());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(RunOne({i, 10}), 2 * (i + 10));
}

TEST_F(PlanRunnerTest, ResultsOfOneStepSurviveTheNext) {
  Endpoint x = Arg(0);
  Result(builder_.Op("Add", {x, x}), 0);
  ASSERT_TRUE(Compile().ok());
  StatusOr<std::vector<Tensor>> first = Run({1});
  EXPECT_EQ(RunOne({50}), 100);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)[0].scalar<int64_t>(), 2);
}

TEST_F(PlanRunnerTest, NamesTheNodeThatFails) {
  Result(builder_.Op("Fail", {Arg(0)}, {}, "culprit"), 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_THAT(std::string(Run({1}).status().message()), HasSubstr("[[{{node culprit}}]]"));
}

TEST_F(PlanRunnerTest, RefusesMissingAndMistypedArguments) {
  Result(builder_.Op("Add", {Arg(0), Arg(1)}), 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_EQ(Run({1}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PlanRunnerTest, WaitsForAsynchronousKernels) {
  Endpoint later = builder_.Op("Later", {Arg(0)});
  Result(builder_.Op("Add", {later, builder_.Op("Later", {later})}), 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_FALSE(plan_->is_straight_line());
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(RunOne({i}), 2 * i);
}

TEST_F(PlanRunnerTest, AFailureEndsWhatWaits) {
  Result(builder_.Op("Never", {Arg(0)}), 0);
  Result(builder_.Op("Fail", {builder_.Op("Later", {Arg(1)})}, {}, "culprit"), 1);
  ASSERT_TRUE(Compile().ok());
  EXPECT_THAT(std::string(Run({1, 2}).status().message()), HasSubstr("culprit"));
}

TEST_F(PlanRunnerTest, CancellationEndsWhatWaits) {
  Result(builder_.Op("Never", {Arg(0)}), 0);
  ASSERT_TRUE(Compile().ok());
  Cancellation parent;
  Thread canceller("canceller", [&] { parent.Cancel(Cancelled("enough")); });
  EXPECT_EQ(Run({1}, &parent).status().code(), absl::StatusCode::kCancelled);
  canceller.Join();
}

TEST_F(PlanRunnerTest, ReadsOfVariablesAreSnapshotsAndUpdatesComeLast) {
  Endpoint variable = builder_.Op("Var", {}, {}, "v");
  Node* assign = builder_.AddNode("Assign", {variable, Arg(0)});
  builder_.set_control_inputs({assign});
  Endpoint before = builder_.Op("Pass", {variable});
  Result(before, 0);
  Node* increment = builder_.AddNode("Increment", {variable});
  builder_.set_control_inputs({increment});
  Result(builder_.Op("Pass", {variable}), 1);
  ASSERT_TRUE(Compile().ok());
  StatusOr<std::vector<Tensor>> out = Run({7});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int64_t>(), 7);
  EXPECT_EQ((*out)[1].scalar<int64_t>(), 8);
}

TEST_F(PlanRunnerTest, SaysWhichVariableIsUninitialized) {
  Result(builder_.Op("Pass", {builder_.Op("Var", {})}, {}, "reader"), 0);
  ASSERT_TRUE(Compile().ok());
  const Status status = Run({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("uninitialized value v"));
}

TEST_F(PlanRunnerTest, SwitchAndMergeTakeOneBranch) {
  Endpoint x = Arg(0);
  Endpoint limit = Arg(1);
  Endpoint less = builder_.Op("Less", {x, limit});
  Node* choice = builder_.AddNode("Switch", {x, less});
  Endpoint doubled = builder_.Op("Add", {Endpoint{choice, 1}, Endpoint{choice, 1}});
  Endpoint same = builder_.Op("Pass", {Endpoint{choice, 0}});
  Node* merged = builder_.AddNode("Merge", {std::vector<Endpoint>{same, doubled}});
  Result({merged, 0}, 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_EQ(RunOne({3, 10}), 6);
  EXPECT_EQ(RunOne({30, 10}), 30);
}

TEST_F(PlanRunnerTest, AMergeLeavesInputsThatAreStillOnTheirWayAlone) {
  Endpoint x = Arg(0);
  Endpoint late = builder_.Op("Hold", {x});
  Endpoint soon = builder_.Op("LaterThanHold", {x});
  Node* merged = builder_.AddNode("Merge", {std::vector<Endpoint>{late, soon}});
  Result(builder_.Op("LetGo", {Endpoint{merged, 0}}), 0);
  ASSERT_TRUE(Compile().ok());
  for (int64_t step = 0; step < 3; ++step) {
    held = std::make_unique<Held>();
    EXPECT_EQ(RunOne({step}), step);
  }
}

TEST_F(PlanRunnerTest, ADeadResultIsAnError) {
  Endpoint x = Arg(0);
  Node* choice = builder_.AddNode("Switch", {x, builder_.Op("Less", {x, Arg(1)})});
  Result({choice, 1}, 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_EQ(RunOne({1, 2}), 1);
  EXPECT_THAT(std::string(Run({3, 2}).status().message()), HasSubstr("was not valid"));
}

TEST_F(PlanRunnerTest, IfWhileAndCallsRunChildPlans) {
  AddFunction("double", {"x"}, DType::kInt64, {.name = "d", .op = "Add", .inputs = {"x", "x"}},
              "d:z:0");
  AddFunction("same", {"x"}, DType::kInt64, {.name = "p", .op = "Pass", .inputs = {"x"}}, "p:y:0");
  Endpoint x = Arg(0);
  Node* branch =
      builder_.AddNode("If", {builder_.Op("Less", {x, Arg(1)}), std::vector<Endpoint>{x}},
                       {{"then_branch", FunctionRef{"double"}},
                        {"else_branch", FunctionRef{"same"}},
                        {"Tout", AttrValue::TypeList{DType::kInt64}}});
  ASSERT_NE(branch, nullptr) << builder_.status();
  Result(builder_.Op("double", {Endpoint{branch, 0}}), 0);
  ASSERT_TRUE(Compile().ok());
  EXPECT_EQ(RunOne({3, 10}), 12);
  EXPECT_EQ(RunOne({30, 10}), 60);
}

TEST_F(PlanRunnerTest, ALoopRunsManyTimesOnAFlatStack) {
  for (const char* name : {"less", "add"}) {
    FunctionDef f;
    f.signature.name = name;
    f.signature.inputs = {{.name = "i", .dtype = DType::kInt64},
                          {.name = "n", .dtype = DType::kInt64},
                          {.name = "one", .dtype = DType::kInt64}};
    if (std::string(name) == "less") {
      f.signature.outputs = {{.name = "out", .dtype = DType::kBool}};
      f.nodes = {{.name = "l", .op = "Less", .inputs = {"i", "n"}}};
      f.returns["out"] = "l:z:0";
    } else {
      f.signature.outputs = f.signature.inputs;
      f.nodes = {{.name = "a", .op = "Add", .inputs = {"i", "one"}}};
      f.returns = {{"i", "a:z:0"}, {"n", "n"}, {"one", "one"}};
    }
    ASSERT_TRUE(graph_.AddFunction(std::move(f)).ok());
  }
  Node* loop = builder_.AddNode("While", {std::vector<Endpoint>{Arg(0), Arg(1), Arg(2)}},
                                {{"cond", FunctionRef{"less"}}, {"body", FunctionRef{"add"}}});
  ASSERT_NE(loop, nullptr) << builder_.status();
  Result({loop, 0}, 0);
  const Status compiled = Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  EXPECT_EQ(RunOne({0, 100000, 1}), 100000);
  EXPECT_EQ(RunOne({5, 3, 1}), 5);
}

TEST_F(PlanRunnerTest, StepsRunBesideEachOther) {
  Result(builder_.Op("Add", {builder_.Op("Later", {Arg(0)}), Arg(1)}), 0);
  ASSERT_TRUE(Compile().ok());
  std::vector<Thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back("step", [&, t] {
      for (int64_t i = 0; i < 100; ++i) {
        StatusOr<std::vector<Tensor>> out = Run({i, t});
        if (!out.ok() || (*out)[0].scalar<int64_t>() != i + t) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PlanRunnerTest, AnUnknownKernelIsToldAtCompileTime) {
  Catalogue empty;
  builder_.AddNode("Add", {Arg(0), Arg(1)}, {}, "sum");
  EXPECT_THAT(std::string(compile::Plan::Compile(graph_.Clone(),
                                                 {.kernels = &empty.kernels(), .device = &device_})
                              .status()
                              .message()),
              HasSubstr("sum"));
}

}  // namespace
}  // namespace weft::executor
