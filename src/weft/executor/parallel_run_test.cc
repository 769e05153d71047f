// SPDX-License-Identifier: Apache-2.0
// Steps on several threads give what they give on one: random graphs of vectors and variables,
// straight and with something that waits.
#include "weft/executor/parallel_run.h"

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/compute_threads.h"
#include "weft/executor/plan_runner.h"
#include "weft/executor/testing/test_ops.h"
#include "weft/graph/builder.h"

namespace weft::executor {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 80'000;  // large enough for the arena

// A vector whose elements are all `value`, in memory of its own.
Status Give(KernelContext& c, int64_t value) {
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{kElements}));
  std::fill_n(out->data<int64_t>(), kElements, value);
  return absl::OkStatus();
}
// InvalidArgument if somebody wrote to the vector in between.
StatusOr<int64_t> ValueOf(const Tensor& vector) {
  const int64_t first = vector.data<int64_t>()[0];
  for (int64_t i = 0; i < vector.num_elements(); ++i) {
    if (vector.data<int64_t>()[i] != first) return Internal("Elements differ at ", i);
  }
  return first;
}

class VectorFill final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override { return Give(c, c.input(0).scalar<int64_t>()); }
};
// 3 x + y, over x where that is allowed, shared out in odd pieces.
class MixKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const int64_t* const x = c.input(0).data<int64_t>();
    const int64_t* const y = c.input(1).data<int64_t>();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 1, 0, Shape{kElements}));
    int64_t* const to = out->data<int64_t>();
    c.ParallelFor(kElements, 10'007, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = (x[i] * 3 + y[i]) % 1'000'003;
    });
    return absl::OkStatus();
  }
};
class LastKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t value, ValueOf(c.input(0)));
    c.SetOutput(0, Tensor::Scalar(value));
    return absl::OkStatus();
  }
};
class AddToKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Variable * variable, c.input_variable(0));
    WEFT_ASSIGN_OR_RETURN(const int64_t by, ValueOf(c.input(1)));
    c.SetOutputVariable(0, Ref<Variable>(variable));
    return variable->Update([&](Tensor& value) {
      for (int64_t i = 0; i < kElements; ++i) {
        value.data<int64_t>()[i] = (value.data<int64_t>()[i] * 2 + by) % 1'000'003;
      }
      return absl::OkStatus();
    });
  }
};
class ThrowKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    switch (c.input(0).scalar<int64_t>()) {
      case 0:
        return absl::OkStatus();
      case 1:
        std::vector<int64_t>().resize(size_t{1} << 62);
        break;
      case 2:
        c.ParallelFor(1000, 1, [](int64_t begin, int64_t) {
          if (begin > 0) std::vector<int>().at(7) = 1;
        });
        break;
      default:
        // More bytes than can be counted: sanitizers end the process where `new` is asked for what
        // it has not.
        delete[] new int64_t[static_cast<size_t>(c.input(0).scalar<int64_t>()) << 60];
    }
    return absl::OkStatus();
  }
};
class ThrowLaterKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& c, Done) override {
    if (c.input(0).scalar<int64_t>() == 1) std::vector<int>().at(7) = 1;
  }
};

Catalogue* MakeVectorOps() {
  auto* c = new Catalogue();
  const auto op = [](const char* name) { return OpSpec(name); };
  testing::AddArgumentAndResult(*c);
  testing::AddVariables(*c);
  testing::AddOneToOne(*c, "Fill", MakeKernel<VectorFill>());
  c->Add(op("Mix")
             .Input("x: int64")
             .Input("y: int64")
             .Output("z: int64")
             .Kernel(MakeKernel<MixKernel>()));
  testing::AddOneToOne(*c, "Last", MakeKernel<LastKernel>());
  testing::AddOneToOne(*c, "Alias", MakeKernel<testing::PassKernel>());
  testing::AddOneToOne(*c, "Wait", MakeKernel<testing::LaterKernel>());
  c->Add(op("Throw").Input("x: int64").Kernel(MakeKernel<ThrowKernel>()));
  c->Add(op("ThrowLater").Input("x: int64").Kernel(MakeKernel<ThrowLaterKernel>()));
  c->Add(op("AddTo")
             .Input("ref: Ref(int64)")
             .Input("value: int64")
             .Output("out: Ref(int64)")
             .Kernel(MakeKernel<AddToKernel>()));
  return c;
}

const Catalogue& VectorOps() {
  static const Catalogue* const catalogue = MakeVectorOps();
  return *catalogue;
}

// A graph with its plan and runner.
class Program {
 public:
  Program(Device* device, ThreadPool* pool)
      : device_(device), pool_(pool), graph_(&VectorOps().ops()), builder_(&graph_) {}

  GraphBuilder& b() { return builder_; }
  Endpoint Argument(int index) {
    return builder_.Op("_Arg", {}, {{"T", DType::kInt64}, {"index", index}});
  }
  void Result(Endpoint e) { builder_.AddNode("_Retval", {e}, {{"index", num_results_++}}); }

  Status Compile(const ScheduleOptions& options) {
    WEFT_RETURN_IF_ERROR(builder_.status());
    WEFT_ASSIGN_OR_RETURN(
        plan_, compile::Plan::Compile(graph_.Clone(),
                                      {.kernels = &VectorOps().kernels(), .device = device_}));
    runner_ = std::make_unique<PlanRunner>(plan_.get(), pool_, options);
    return absl::OkStatus();
  }

  StatusOr<std::vector<int64_t>> Run(const std::vector<int64_t>& arguments) {
    Cancellation cancellation;
    RunRequest request;
    request.environment.device = device_;
    request.environment.cancellation = &cancellation;
    for (int64_t value : arguments) request.arguments.push_back(Tensor::Scalar(value));
    absl::Notification ended;
    StatusOr<std::vector<int64_t>> out = Internal("not run");
    runner_->Run(std::move(request), [&](Status status, std::vector<Tensor> results) {
      if (status.ok()) {
        out = std::vector<int64_t>();
      } else {
        out = std::move(status);
      }
      for (const Tensor& result : results) {
        if (out.ok()) out->push_back(result.num_elements() > 0 ? result.data<int64_t>()[0] : -1);
      }
      ended.Notify();
    });
    ended.WaitForNotification();
    return out;
  }
  const compile::Plan& plan() const { return *plan_; }

 private:
  Device* const device_;
  ThreadPool* const pool_;
  Graph graph_;
  GraphBuilder builder_;
  int num_results_ = 0;
  std::unique_ptr<compile::Plan> plan_;
  std::unique_ptr<PlanRunner> runner_;
};

// Vectors of vectors, variables that are read before and behind their updates, results here and
// there.
void AddRandomGraph(Program& program, uint32_t seed, bool waits) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  GraphBuilder& b = program.b();
  // All stands behind what waits: else the moment at which that ends decides what is read.
  const Endpoint x = waits ? b.Op("Wait", {program.Argument(0)}) : program.Argument(0);
  std::vector<Endpoint> vectors;
  for (int i = 0; i < 4; ++i) vectors.push_back(b.Op("Fill", {x}));
  std::vector<Endpoint> references;
  for (int i = 0; i < 3; ++i) {
    Node* assign = b.AddNode("Assign", {b.Op("Var", {}), vectors[pick(vectors.size())]});
    if (assign != nullptr) references.push_back({assign, 0});
  }
  for (int i = 0; i < 40; ++i) {
    const Endpoint a = vectors[pick(vectors.size())];
    const Endpoint c = vectors[pick(vectors.size())];
    switch (pick(8)) {
      case 0:
        vectors.push_back(b.Op("Alias", {a}));
        break;
      case 1:
        vectors.push_back(b.Op("Mix", {references[pick(references.size())], c}));
        break;
      case 2: {
        Endpoint& reference = references[pick(references.size())];
        reference = b.Op("AddTo", {reference, c});
        break;
      }
      case 3:
        program.Result(b.Op("Last", {a}));
        break;
      default:
        vectors.push_back(b.Op("Mix", {a, c}));
    }
  }
  for (const Endpoint& reference : references) program.Result(reference);
  program.Result(b.Op("Last", {vectors.back()}));
}

class ParallelRunTest : public ::testing::Test {
 protected:
  static constexpr ScheduleOptions kInOrder{.num_threads = 1};
  static constexpr ScheduleOptions kSideBySide{
      .num_threads = 4, .worth_handing_over = 0, .always = true};

  void CompareRandomGraphs(bool waits) {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      Program in_order(&device_, &pool_), side_by_side(&device_, &pool_);
      AddRandomGraph(in_order, seed, waits);
      AddRandomGraph(side_by_side, seed, waits);
      ASSERT_TRUE(in_order.Compile(kInOrder).ok());
      ASSERT_TRUE(side_by_side.Compile(kSideBySide).ok());
      ASSERT_EQ(side_by_side.plan().is_straight_line(), !waits);
      for (int64_t step = 0; step < 12; ++step) {
        const auto expected = in_order.Run({step});
        const auto got = side_by_side.Run({step});
        ASSERT_TRUE(expected.ok()) << expected.status();
        ASSERT_TRUE(got.ok()) << "seed " << seed << " step " << step << ": " << got.status();
        EXPECT_EQ(*got, *expected) << "seed " << seed << " step " << step;
      }
    }
    // Threads that were called for a step that had ended are about to find that out.
    for (int i = 0; i < 1000 && ComputingThreads() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(ComputingThreads(), 0);
  }

  ThreadPool pool_{"test", 4};
  Device device_{{.name = "/job:localhost/replica:0/task:0/device:CPU:0", .type = "CPU"},
                 &HostAllocator(),
                 &pool_};
};

TEST_F(ParallelRunTest, RandomStraightGraphsGiveWhatTheyGiveInOrder) { CompareRandomGraphs(false); }

TEST_F(ParallelRunTest, RandomGraphsThatWaitGiveWhatTheyGiveInOrder) { CompareRandomGraphs(true); }

TEST_F(ParallelRunTest, OfTwoErrorsTheFirstInPlanOrderIsReported) {
  Program in_order(&device_, &pool_), side_by_side(&device_, &pool_);
  for (Program* program : {&in_order, &side_by_side}) {
    const Endpoint x = program->Argument(0);
    for (int i = 0; i < 6; ++i) {
      program->b().AddNode("Throw", {program->b().Op("Last", {program->b().Op("Fill", {x})})});
    }
    ASSERT_TRUE(program->Compile(program == &in_order ? kInOrder : kSideBySide).ok());
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(program->Run({0}).ok());
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(side_by_side.Run({1}).status(), in_order.Run({1}).status());
  }
  EXPECT_TRUE(side_by_side.Run({0}).ok());
}

TEST_F(ParallelRunTest, AKernelThatThrowsEndsItsStepAndNotTheProcess) {
  for (const bool waits : {false, true}) {
    for (const ScheduleOptions& options : {kInOrder, kSideBySide}) {
      Program program(&device_, &pool_);
      const Endpoint x = program.Argument(0);
      program.b().AddNode("Throw", {waits ? program.b().Op("Wait", {x}) : x}, {}, "thrower");
      ASSERT_TRUE(program.Compile(options).ok());
      for (int i = 0; i < 6; ++i) ASSERT_TRUE(program.Run({0}).ok());
      for (int64_t what = 1; what <= 3; ++what) {
        const Status status = program.Run({what}).status();
        EXPECT_EQ(status.code(),
                  what == 2 ? absl::StatusCode::kInternal : absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(status.message()), HasSubstr("{{node thrower}}"));
      }
      EXPECT_TRUE(program.Run({0}).ok());
    }
  }
}

TEST_F(ParallelRunTest, AWaitingKernelThatThrowsOrForgetsItsCallbackEndsItsStep) {
  Program program(&device_, &pool_);
  program.b().AddNode("ThrowLater", {program.Argument(0)}, {}, "thrower");
  ASSERT_TRUE(program.Compile(kInOrder).ok());
  EXPECT_THAT(std::string(program.Run({1}).status().message()),
              HasSubstr("An exception was thrown"));
  const Status dropped = program.Run({0}).status();
  EXPECT_THAT(std::string(dropped.message()), HasSubstr("dropped its callback"));
  EXPECT_THAT(std::string(dropped.message()), HasSubstr("{{node thrower}}"));
}

}  // namespace
}  // namespace weft::executor
