// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/device/cpu/cpu_device.h"
#include "weft/imperative/runtime.h"
#include "weft/imperative/tape.h"
#include "weft/imperative/traced_function.h"
#include "weft/ops/catalogue.h"

namespace weft::imperative {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

class ImperativeTest : public testing::Test {
 protected:
  ImperativeTest() {
    auto made =
        Runtime::Make({.catalogue = &StandardCatalogue(), .devices = &devices_, .num_threads = 1});
    EXPECT_TRUE(made.ok()) << made.status();
    runtime_ = *std::move(made);
  }
  Runtime& run() { return *runtime_; }
  static Array Floats(std::initializer_list<float> values) { return Array::Vector<float>(values); }
  static absl::Span<const float> In(const Array& array) { return array.tensor().span<float>(); }
  Array Mul(const Array& a, const Array& b) { return run().Op("Mul", {a, b}); }
  Array Sum(const Array& a) { return run().Op("Sum", {a, Array::Vector<int32_t>({0})}); }

  CpuDevices devices_{2};
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(ImperativeTest, OpsRunAtOnce) {
  const Array x = Floats({1, 2, 3});
  EXPECT_THAT(In(run().Op("AddV2", {x, x})), ElementsAre(2, 4, 6));
  const std::vector<Array> parts =
      run().Outputs("Split", {Array::Scalar<int32_t>(0), Floats({1, 2, 3, 4})}, {{"num_split", 2}});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(In(parts[1]), ElementsAre(3, 4));
  EXPECT_THAT(In(run().Op("ConcatV2", {std::vector<Array>{x, x}, Array::Scalar<int32_t>(0)})),
              ElementsAre(1, 2, 3, 1, 2, 3));
  // Attributes that differ in what texts do not show are others.
  EXPECT_THAT(In(run().Op("LeakyRelu", {Floats({-1})}, {{"alpha", 0.1F}}))[0], -0.1F);
  EXPECT_THAT(In(run().Op("LeakyRelu", {Floats({-1})}, {{"alpha", 0.10000001F}}))[0], -0.10000001F);
  EXPECT_TRUE(run().ok()) << run().status();
}

TEST_F(ImperativeTest, TheFirstErrorStays) {
  EXPECT_FALSE(run().Op("MatMul", {Floats({1}), Floats({1})}));
  EXPECT_FALSE(run().Op("AddV2", {Floats({1}), Floats({1})}));
  EXPECT_THAT(std::string(run().TakeStatus().message()), HasSubstr("MatMul"));
  EXPECT_TRUE(run().Op("AddV2", {Floats({1}), Floats({1})}));
  EXPECT_FALSE(run().Op("NoSuchOp", {}));
  EXPECT_THAT(std::string(run().TakeStatus().message()), HasSubstr("NoSuchOp"));
  EXPECT_FALSE(run().Op("AddV2", {Array(), Floats({1})}));
  EXPECT_THAT(std::string(run().TakeStatus().message()), HasSubstr("nothing"));
  EXPECT_THAT(std::string(run().SetDevice("/device:CPU:7").message()), HasSubstr("CPU:1"));
  EXPECT_TRUE(run().SetDevice("/device:CPU:1").ok());
  EXPECT_THAT(In(run().Op("AddV2", {Floats({1}), Floats({1})})), ElementsAre(2));
}

TEST_F(ImperativeTest, GradientsOfOps) {
  const Array x = Floats({1, 2, 3}), c = Floats({2, 2, 2}), other = Floats({5});
  Tape tape(run());
  tape.Watch(x);
  const Array y = Sum(Mul(Mul(x, x), c));
  const std::vector<Array> gradients = tape.Gradient({y}, {x, other});
  ASSERT_EQ(gradients.size(), 2u) << run().status();
  EXPECT_THAT(In(gradients[0]), ElementsAre(4, 8, 12));
  EXPECT_FALSE(gradients[1]);
  EXPECT_TRUE(tape.Gradient({y}, {x}).empty());
  EXPECT_THAT(std::string(run().TakeStatus().message()), HasSubstr("persistent"));
}

TEST_F(ImperativeTest, GradientsOfGradients) {
  const Array x = Floats({2});
  Tape outer(run()), middle(run()), inner(run());
  for (Tape* tape : {&outer, &middle, &inner}) tape->Watch(x);
  const Array y = Mul(Mul(x, x), Mul(x, x));
  const Array first = inner.Gradient({y}, {x})[0];
  const Array second = middle.Gradient({first}, {x})[0];
  const Array third = outer.Gradient({second}, {x})[0];
  ASSERT_TRUE(run().ok()) << run().status();
  EXPECT_THAT(In(first), ElementsAre(32));
  EXPECT_THAT(In(second), ElementsAre(48));
  EXPECT_THAT(In(third), ElementsAre(48));
}

TEST_F(ImperativeTest, APersistentTapeGivesMore) {
  const Array x = Floats({3});
  Tape tape(run(), /*persistent=*/true);
  tape.Watch(x);
  const Array square = Mul(x, x), cube = Mul(square, x);
  const Array first = tape.Gradient({cube}, {x})[0];
  ASSERT_TRUE(run().ok()) << run().status();
  EXPECT_THAT(In(first), ElementsAre(27));
  EXPECT_THAT(In(tape.Gradient({square}, {x})[0]), ElementsAre(6));
  EXPECT_THAT(In(tape.Gradient({first}, {x})[0]), ElementsAre(18));
  EXPECT_THAT(In(tape.Gradient({square}, {x}, {Floats({10})})[0]), ElementsAre(60));
}

TEST_F(ImperativeTest, VariablesAreWatchedByThemselves) {
  const Variable w(run(), Floats({1, 2}));
  Tape tape(run());
  const Array loss = Sum(Mul(w.Read(), w.Read()));
  const std::vector<Array> gradients = tape.Gradient({loss}, {w.handle()});
  ASSERT_EQ(gradients.size(), 1u) << run().status();
  EXPECT_THAT(In(gradients[0]), ElementsAre(2, 4));
  w.AssignSub(gradients[0]);
  EXPECT_THAT(In(w.Read()), ElementsAre(-1, -2));
  w.AssignAdd(Floats({1, 1}));
  EXPECT_THAT(In(w.Read()), ElementsAre(0, -1));
  w.Assign(Floats({7, 8}));
  EXPECT_THAT(In(w.Read()), ElementsAre(7, 8));
}

TEST_F(ImperativeTest, NothingFlowsThroughWhatIsNotDifferentiable) {
  const Array x = Floats({1.5, 2.5});
  Tape tape(run());
  tape.Watch(x);
  const Array y = run().Op("ArgMax", {x, Array::Scalar<int32_t>(0)});
  const Array z = Mul(run().Op("Rint", {x}), x);
  const std::vector<Array> gradients = tape.Gradient({z}, {x});
  ASSERT_EQ(gradients.size(), 1u) << run().status();
  EXPECT_THAT(In(gradients[0]), ElementsAre(2, 2));
  Tape other(run());
  EXPECT_TRUE(other.Gradient({y}, {x}).empty());
  EXPECT_THAT(std::string(run().TakeStatus().message()), HasSubstr("int64, which has no gradient"));
}

TEST_F(ImperativeTest, FunctionsAreTracedOnceForEachKindOfInput) {
  int calls = 0;
  TracedFunction twice(run(), [&](absl::Span<const Array> in) {
    ++calls;
    return std::vector<Array>{run().Op("AddV2", {in[0], in[0]})};
  });
  EXPECT_THAT(In(twice({Floats({1, 2})})[0]), ElementsAre(2, 4));
  EXPECT_THAT(In(twice({Floats({3, 4})})[0]), ElementsAre(6, 8));
  EXPECT_EQ(calls, 1);
  // Another size makes the size one that varies.
  EXPECT_THAT(In(twice({Floats({1, 2, 3})})[0]), ElementsAre(2, 4, 6));
  EXPECT_THAT(In(twice({Floats({5})})[0]), ElementsAre(10));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(twice.num_traces(), 1u);
  EXPECT_EQ(twice({Array::Vector<int32_t>({4})})[0].tensor().data<int32_t>()[0], 8);
  EXPECT_EQ(twice.num_traces(), 2u);
  EXPECT_TRUE(run().ok()) << run().status();
}

TEST_F(ImperativeTest, FunctionsUseWhatIsOutside) {
  const Variable w(run(), Floats({1}));
  const Array scale = Floats({10});
  TracedFunction add(run(), [&](absl::Span<const Array> in) {
    w.AssignAdd(in[0]);
    const Array before = w.Read();
    w.AssignAdd(in[0]);
    return std::vector<Array>{Mul(before, scale), w.Read()};
  });
  const std::vector<Array> once = add({Floats({1})});
  ASSERT_EQ(once.size(), 2u) << run().status();
  EXPECT_THAT(In(once[0]), ElementsAre(20));
  EXPECT_THAT(In(once[1]), ElementsAre(3));
  EXPECT_THAT(In(add({Floats({2})})[1]), ElementsAre(7));
  EXPECT_THAT(In(w.Read()), ElementsAre(7));
}

TEST_F(ImperativeTest, GradientsOfFunctionsAreThoseOfTheirOps) {
  const Variable w(run(), Floats({2, 3}));
  const auto body = [&](absl::Span<const Array> in) {
    return std::vector<Array>{Sum(run().Op("Tanh", {Mul(w.Read(), in[0])}))};
  };
  TracedFunction traced(run(), body);
  const Array x = Floats({0.5, -0.25});
  std::vector<std::vector<Array>> both;
  for (const bool is_traced : {false, true}) {
    Tape outer(run());
    outer.Watch(x);
    Tape tape(run());
    tape.Watch(x);
    const Array y = is_traced ? traced({x})[0] : body({x})[0];
    std::vector<Array> gradients = tape.Gradient({y}, {x, w.handle()});
    ASSERT_EQ(gradients.size(), 2u) << run().status();
    gradients.push_back(outer.Gradient({Sum(gradients[0])}, {x})[0]);
    ASSERT_TRUE(run().ok()) << run().status();
    both.push_back(std::move(gradients));
  }
  for (size_t i = 0; i < both[0].size(); ++i) {
    ASSERT_TRUE(both[0][i] && both[1][i]) << i;
    for (int j = 0; j < 2; ++j)
      EXPECT_THAT(In(both[1][i])[j], FloatNear(In(both[0][i])[j], 1e-6F)) << i;
  }
}

TEST_F(ImperativeTest, ATracedStepTrainsAsTheOpsDo) {
  const Array x = Floats({-1, 0, 1, 2}), y = Floats({-1, 2, 5, 8}),
              rate = Array::Scalar<float>(0.1F);
  std::vector<std::vector<float>> losses(2);
  for (const bool is_traced : {false, true}) {
    const Variable slope(run(), Array::Scalar<float>(0)), offset(run(), Array::Scalar<float>(0));
    const auto step = [&](absl::Span<const Array> in) {
      Tape tape(run());
      const Array line = run().Op("AddV2", {Mul(in[0], slope.Read()), offset.Read()});
      const Array loss = run().Op(
          "Mean", {run().Op("SquaredDifference", {line, in[1]}), Array::Scalar<int32_t>(0)});
      const std::vector<Array> gradients = tape.Gradient({loss}, {slope.handle(), offset.handle()});
      if (gradients.size() != 2) return std::vector<Array>();
      slope.AssignSub(Mul(rate, gradients[0]));
      offset.AssignSub(Mul(rate, gradients[1]));
      return std::vector<Array>{loss};
    };
    TracedFunction traced(run(), step);
    for (int i = 0; i < 60; ++i) {
      const std::vector<Array> loss = is_traced ? traced({x, y}) : step({x, y});
      ASSERT_EQ(loss.size(), 1u) << run().status();
      losses[is_traced ? 1 : 0].push_back(loss[0].tensor().scalar<float>());
    }
  }
  EXPECT_LT(losses[0].back(), 0.01F);
  for (size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-4) << i;
}

}  // namespace
}  // namespace weft::imperative
