// SPDX-License-Identifier: Apache-2.0
// A session with two devices in this process.
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

using ::testing::HasSubstr;

constexpr char kFirst[] = "/device:CPU:0";
constexpr char kSecond[] = "/device:CPU:1";

AttrValue ScalarShape() { return PartialShape(Tensor::Scalar<float>(0).shape()); }

class DevicesTest : public ::testing::Test {
 protected:
  CpuDevices two_devices_{2};

  std::unique_ptr<Session> NewSession(bool soft_placement = false) {
    StatusOr<std::unique_ptr<Session>> session =
        NewDirectSession({.catalogue = &StandardCatalogue(),
                          .devices = &two_devices_,
                          .num_threads = 2,
                          .soft_placement = soft_placement});
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  std::unique_ptr<Session> SessionOfGraph() {
    EXPECT_TRUE(b_.ok()) << b_.status();
    std::unique_ptr<Session> session = NewSession();
    EXPECT_EQ(session->Extend(ExportGraph(graph_)), absl::OkStatus());
    return session;
  }
  // A variable of one float on the device that the builder is set to, and its initializer.
  Endpoint Variable(const std::string& name, float value) {
    const Endpoint v =
        b_.Op("VarHandleOp", {},
              {{"dtype", DType::kFloat}, {"shape", ScalarShape()}, {"shared_name", "v"}}, name);
    b_.Op("AssignVariableOp", {v, b_.Scalar<float>(value)}, {}, name + "/init");
    return v;
  }
  Endpoint Read(Endpoint variable) {
    return b_.Op("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}});
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
};

TEST_F(DevicesTest, AreListed) {
  const StatusOr<std::vector<DeviceAttributes>> devices = NewSession()->ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ((*devices)[1].name, "/job:localhost/replica:0/task:0/device:CPU:1");
}

TEST_F(DevicesTest, EachHasItsOwnVariables) {
  b_.set_device(kFirst);
  const Endpoint a = Variable("a", 1);
  b_.set_device(kSecond);
  const Endpoint b = Variable("b", 10);  // of the same name, elsewhere
  b_.Op("AddV2", {Read(a), Read(b)}, {}, "sum");
  b_.set_device(kFirst);
  b_.Op("AssignAddVariableOp", {a, Endpoint{graph_.Find("sum"), 0}}, {}, "grow");
  const std::unique_ptr<Session> session = SessionOfGraph();
  ASSERT_EQ(session->Run({}, {}, {"a/init", "b/init"}, nullptr), absl::OkStatus());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(session->Run({}, {}, {"grow"}, nullptr), absl::OkStatus());
  std::vector<Tensor> results;
  RunMetadata metadata;
  ASSERT_EQ(
      session->Run({.trace = true, .partition_graphs = true}, {}, {"sum"}, {}, &results, &metadata),
      absl::OkStatus());
  EXPECT_EQ(results[0].scalar<float>(), 88);
  std::set<std::string> devices;
  for (const executor::NodeTrace& node : metadata.trace) devices.insert(node.device);
  EXPECT_EQ(devices.size(), 2u) << "nodes ran on both";
}

TEST_F(DevicesTest, FeedsAndFetchesMayBeAnywhere) {
  b_.set_device(kSecond);
  const Endpoint x = b_.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "x");
  b_.Op("Neg", {x}, {}, "y");
  const std::unique_ptr<Session> session = SessionOfGraph();
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({{"x", Tensor::Vector<float>({1, 2})}}, {"y", "x"}, {}, &results),
            absl::OkStatus());
  EXPECT_EQ(results[0].data<float>()[1], -2);
  EXPECT_EQ(results[1].data<float>()[1], 2);
}

// Gives its input when two calls are under way.
class MeetKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    absl::SleepFor(absl::Milliseconds(1));  // worth a thread
    absl::MutexLock lock(&mutex_);
    const int both = (++arrived_ + 1) / 2 * 2;
    const auto have_met = [&] { return arrived_ >= both; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&have_met), absl::Seconds(20)))
      return DeadlineExceeded("Nobody else came");
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }

 private:
  static inline absl::Mutex mutex_;
  static inline int arrived_ = 0;
};

// The second device begins with what the first one sends, which must not make it wait until the
// second one has done its work.
TEST_F(DevicesTest, ComputeSideBySide) {
  Catalogue catalogue;
  RegisterOps(catalogue);
  catalogue.Add(
      OpSpec("Meet").Input("x: float").Output("y: float").Kernel(MakeKernel<MeetKernel>()));
  ASSERT_EQ(catalogue.status(), absl::OkStatus());
  Graph graph(&catalogue.ops());
  GraphBuilder b(&graph);
  b.set_device(kFirst);
  const Endpoint x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "x");
  const Endpoint here = b.Op("Meet", {b.Op("Neg", {x})});
  b.set_device(kSecond);
  const Endpoint there = b.Op("Meet", {b.Op("Square", {x})});
  b.set_device(kFirst);
  b.Op("AddV2", {here, there}, {}, "y");
  ASSERT_TRUE(b.ok()) << b.status();
  StatusOr<std::unique_ptr<Session>> session =
      NewDirectSession({.catalogue = &catalogue, .devices = &two_devices_, .num_threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ((*session)->Extend(ExportGraph(graph)), absl::OkStatus());
  for (int step = 0; step < 30; ++step) {
    std::vector<Tensor> results;
    ASSERT_EQ((*session)->Run({{"x", Tensor::Scalar<float>(3)}}, {"y"}, {}, &results),
              absl::OkStatus())
        << "step " << step;
    EXPECT_EQ(results[0].scalar<float>(), 6);
  }
}

TEST_F(DevicesTest, AFailureOnOneEndsWhatWaitsOnTheOther) {
  b_.set_device(kSecond);
  const Endpoint broken =
      b_.Op("CheckNumerics", {b_.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "x")},
            {{"message", "not a number"}}, "check");
  b_.set_device(kFirst);
  b_.Op("Neg", {broken}, {}, "y");
  const std::unique_ptr<Session> session = SessionOfGraph();
  std::vector<Tensor> results;
  for (int i = 0; i < 20; ++i) {
    const Status status =
        session->Run({{"x", Tensor::Scalar<float>(std::nanf(""))}}, {"y"}, {}, &results);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a number"));
    ASSERT_EQ(session->Run({{"x", Tensor::Scalar<float>(1)}}, {"y"}, {}, &results),
              absl::OkStatus());
  }
}

TEST_F(DevicesTest, WhatWaitsForABranchNotTakenDoesNotRunElsewhere) {
  b_.set_device(kFirst);
  const Endpoint taken =
      b_.Op("Placeholder", {}, {{"dtype", DType::kBool}, {"shape", ScalarShape()}}, "taken");
  Node* const branch = b_.AddNode("Switch", {b_.Scalar<float>(0), taken});
  const Endpoint inside = b_.Op("Identity", {Endpoint{branch, 1}});
  b_.set_device(kSecond);
  const Endpoint counter = Variable("counter", 0);
  b_.set_control_inputs({inside.node});
  b_.Op("AssignAddVariableOp", {counter, b_.Scalar<float>(1)}, {}, "count");
  b_.set_control_inputs({});
  b_.Op("ReadVariableOp", {counter}, {{"dtype", DType::kFloat}}, "counted");
  const std::unique_ptr<Session> session = SessionOfGraph();
  ASSERT_EQ(session->Run({}, {}, {"counter/init"}, nullptr), absl::OkStatus());
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(session->Run({{"taken", Tensor::Scalar<bool>(i % 2 == 0)}}, {}, {"count"}, nullptr),
              absl::OkStatus());
  }
  std::vector<Tensor> results;
  ASSERT_EQ(session->Run({}, {"counted"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].scalar<float>(), 3);
}

TEST_F(DevicesTest, ADeviceThatThereIsNotIsRefusedUnlessPlacementIsSoft) {
  b_.set_device("/device:GPU:0");
  b_.Op("Neg", {b_.Scalar<float>(2)}, {}, "y");
  ASSERT_TRUE(b_.ok()) << b_.status();
  const Status refused = NewSession()->Extend(ExportGraph(graph_));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ::testing::AllOf(HasSubstr("explicitly assigned to /device:GPU:0"),
                               HasSubstr("allow_soft_placement")));
  const std::unique_ptr<Session> soft = NewSession(/*soft_placement=*/true);
  ASSERT_EQ(soft->Extend(ExportGraph(graph_)), absl::OkStatus());
  std::vector<Tensor> results;
  ASSERT_EQ(soft->Run({}, {"y"}, {}, &results), absl::OkStatus());
  EXPECT_EQ(results[0].scalar<float>(), -2);
}

// while (i < limit) { i += 1 on one device; x = x * 2 + i on the other }
class SpanningLoopsTest : public DevicesTest {
 protected:
  struct Variable {
    Node* merge = nullptr;
    Endpoint value;  // in the body
    Endpoint exit;
  };
  Endpoint Enter(Endpoint value, const std::string& frame, bool constant = false) {
    return b_.Op("Enter", {value}, {{"frame_name", frame}, {"is_constant", constant}});
  }
  Node* Begin(Endpoint first, const std::string& frame) {
    const Endpoint entered = Enter(first, frame);
    return b_.AddNode("Merge", {std::vector<Endpoint>{entered, entered}});
  }
  Variable Turn(Node* merge, Endpoint goes_on) {
    Node* turn = b_.AddNode("Switch", {Endpoint{merge, 0}, goes_on});
    return {merge, b_.Op("Identity", {Endpoint{turn, 1}}), b_.Op("Exit", {Endpoint{turn, 0}})};
  }
  void GoRound(const Variable& variable, Endpoint next) {
    EXPECT_TRUE(graph_.SetInput(variable.merge, 1, b_.Op("NextIteration", {next})).ok());
  }
};

TEST_F(SpanningLoopsTest, VariablesOfALoopMayBeOnDifferentDevices) {
  b_.set_device(kFirst);
  const Endpoint limit =
      Enter(b_.Op("Placeholder", {}, {{"dtype", DType::kInt32}, {"shape", ScalarShape()}}, "limit"),
            "loop", true);
  const Endpoint one = Enter(b_.Scalar<int32_t>(1), "loop", true);
  Node* const i = Begin(b_.Scalar<int32_t>(0), "loop");
  b_.set_device(kSecond);
  Node* const x = Begin(b_.Scalar<int32_t>(1), "loop");
  b_.set_device(kFirst);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {Endpoint{i, 0}, limit})});
  const Variable counter = Turn(i, goes_on);
  const Endpoint next = b_.Op("AddV2", {counter.value, one});
  GoRound(counter, next);
  b_.set_device(kSecond);
  const Variable sum = Turn(x, goes_on);
  GoRound(sum, b_.Op("AddV2", {b_.Op("AddV2", {sum.value, sum.value}), next}));
  b_.Op("Identity", {sum.exit}, {}, "x");
  b_.Op("Identity", {counter.exit}, {}, "i");
  const std::unique_ptr<Session> session = SessionOfGraph();
  int32_t expected = 1;
  for (int32_t n = 0; n < 20; ++n) {
    std::vector<Tensor> results;
    ASSERT_EQ(session->Run({{"limit", Tensor::Scalar<int32_t>(n)}}, {"x", "i"}, {}, &results),
              absl::OkStatus());
    EXPECT_EQ(results[0].scalar<int32_t>(), expected);
    EXPECT_EQ(results[1].scalar<int32_t>(), n);
    expected = expected * 2 + n + 1;
  }
}

// for i < 4: for j < i: x += 1, the inner sum on the second device.
TEST_F(SpanningLoopsTest, LoopsInsideLoops) {
  b_.set_device(kFirst);
  Node* const i = Begin(b_.Scalar<int32_t>(0), "outer");
  Node* const x = Begin(b_.Scalar<int32_t>(0), "outer");
  const Endpoint four = Enter(b_.Scalar<int32_t>(4), "outer", true);
  const Endpoint one = Enter(b_.Scalar<int32_t>(1), "outer", true);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {Endpoint{i, 0}, four})});
  const Variable outer_i = Turn(i, goes_on);
  const Variable outer_x = Turn(x, goes_on);

  const Endpoint inner_limit = Enter(outer_i.value, "inner", true);
  const Endpoint inner_one = Enter(one, "inner", true);
  b_.set_control_inputs({outer_i.value.node});
  const Endpoint zero = b_.Scalar<int32_t>(0);
  b_.set_control_inputs({});
  Node* const j = Begin(zero, "inner");
  b_.set_device(kSecond);
  Node* const y = Begin(outer_x.value, "inner");
  b_.set_device(kFirst);
  const Endpoint inner_goes_on = b_.Op("LoopCond", {b_.Op("Less", {Endpoint{j, 0}, inner_limit})});
  const Variable inner_j = Turn(j, inner_goes_on);
  GoRound(inner_j, b_.Op("AddV2", {inner_j.value, inner_one}));
  b_.set_device(kSecond);
  const Variable inner_y = Turn(y, inner_goes_on);
  GoRound(inner_y, b_.Op("AddV2", {inner_y.value, inner_one}));

  b_.set_device(kFirst);
  GoRound(outer_i, b_.Op("AddV2", {outer_i.value, one}));
  GoRound(outer_x, inner_y.exit);
  b_.Op("Identity", {outer_x.exit}, {}, "x");
  const std::unique_ptr<Session> session = SessionOfGraph();
  for (int step = 0; step < 5; ++step) {
    std::vector<Tensor> results;
    ASSERT_EQ(session->Run({}, {"x"}, {}, &results), absl::OkStatus());
    EXPECT_EQ(results[0].scalar<int32_t>(), 6);
  }
}

// A loop in the branch that is not taken: all of its places end without a value.
TEST_F(SpanningLoopsTest, InABranchNotTaken) {
  b_.set_device(kFirst);
  const Endpoint taken =
      b_.Op("Placeholder", {}, {{"dtype", DType::kBool}, {"shape", ScalarShape()}}, "taken");
  Node* const branch = b_.AddNode("Switch", {b_.Scalar<float>(3), taken});
  Node* const i = Begin({branch, 1}, "loop");
  b_.set_device(kSecond);
  const Endpoint limit = Enter(b_.Scalar<float>(100), "loop", true);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Less", {Endpoint{i, 0}, limit})});
  b_.set_device(kFirst);
  const Variable v = Turn(i, goes_on);
  b_.set_device(kSecond);
  const Endpoint twice = b_.Op("AddV2", {v.value, v.value});
  b_.set_device(kFirst);
  GoRound(v, twice);
  b_.AddNode("Merge", {std::vector<Endpoint>{v.exit, Endpoint{branch, 0}}}, {}, "out");
  const std::unique_ptr<Session> session = SessionOfGraph();
  for (int step = 0; step < 6; ++step) {
    std::vector<Tensor> results;
    ASSERT_EQ(session->Run({{"taken", Tensor::Scalar<bool>(step % 2 == 0)}}, {"out"}, {}, &results),
              absl::OkStatus());
    EXPECT_EQ(results[0].scalar<float>(), step % 2 == 0 ? 192 : 3);
  }
}

TEST_F(SpanningLoopsTest, AFailureInAnIterationEndsAllPlaces) {
  b_.set_device(kFirst);
  Node* const i = Begin(b_.Scalar<float>(3), "loop");
  const Endpoint zero = Enter(b_.Scalar<float>(-1000), "loop", true);
  const Endpoint one = Enter(b_.Scalar<float>(1), "loop", true);
  const Endpoint goes_on = b_.Op("LoopCond", {b_.Op("Greater", {Endpoint{i, 0}, zero})});
  const Variable v = Turn(i, goes_on);
  b_.set_device(kSecond);
  const Endpoint checked =
      b_.Op("CheckNumerics", {b_.Op("Log", {v.value})}, {{"message", "no logarithm"}});
  b_.set_device(kFirst);
  b_.set_control_inputs({checked.node});
  const Endpoint next = b_.Op("Sub", {v.value, one});
  b_.set_control_inputs({});
  GoRound(v, next);
  b_.Op("Identity", {v.exit}, {}, "out");
  const std::unique_ptr<Session> session = SessionOfGraph();
  for (int step = 0; step < 10; ++step) {
    std::vector<Tensor> results;
    const Status status = session->Run({}, {"out"}, {}, &results);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no logarithm"));
  }
}

}  // namespace
}  // namespace weft::session
