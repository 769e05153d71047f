// SPDX-License-Identifier: Apache-2.0
// What all optimizers share: learning rates of every form.
#include "weft/train/optimizer.h"

#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::train {
namespace {

StatusOr<std::unique_ptr<session::Session>> SessionOf(Program& program) {
  session::DirectOptions options;
  options.catalogue = &StandardCatalogue();
  options.devices = &StandardDevices();
  options.num_threads = 1;
  WEFT_RETURN_IF_ERROR(program.status());
  WEFT_ASSIGN_OR_RETURN(auto session, session::NewDirectSession(options));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program.graph())));
  return session;
}

using Make = std::unique_ptr<Optimizer> (*)(LearningRate);
struct OptimizerCase {
  const char* name;
  Make make;
};
const OptimizerCase kCases[] = {
    {"GradientDescent", [](LearningRate r) { return GradientDescent(r); }},
    {"Momentum", [](LearningRate r) { return Momentum(r, 0.9, true); }},
    {"Adam", [](LearningRate r) { return Adam(r); }},
    {"Adagrad", [](LearningRate r) { return Adagrad(r); }},
    {"RmsProp", [](LearningRate r) { return RmsProp(r, 0.9, 0.5); }},
    {"Ftrl", [](LearningRate r) { return Ftrl(r); }},
    {"Adadelta", [](LearningRate r) { return Adadelta(r); }},
};

// A table of which two rows are looked up, and a bias, after one step at each of `rates`.
StatusOr<std::vector<Tensor>> Train(const OptimizerCase& which, const std::vector<double>& rates,
                                    bool as_tensor) {
  Program program;
  GraphBuilder& b = program.builder();
  const Variable table = program.AddVariable("table", DType::kFloat, {4, 2}, Constant(0.5));
  const Variable bias = program.AddVariable("bias", DType::kFloat, {2}, Constant(0.25));
  const Endpoint ids = b.Constant(Tensor::Vector<int32_t>({3, 1}));
  const Endpoint rows = EmbeddingLookup(b, {table}, ids);
  const Endpoint loss = b.Op("L2Loss", {b.Op("AddV2", {rows, bias.value})});
  const Endpoint rate = b.Op("Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", Shape()}});
  const LearningRate number(rates[0]);
  auto optimizer = which.make(as_tensor ? LearningRate(rate) : number);
  WEFT_ASSIGN_OR_RETURN(Node * train, optimizer->Minimize(program, loss));
  Node* init = program.InitializeVariables();
  WEFT_ASSIGN_OR_RETURN(auto session, SessionOf(program));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  for (const double now : rates) {
    std::vector<session::Feed> feeds;
    if (as_tensor) feeds.push_back({NameOf(rate), Tensor::Scalar<double>(now)});
    WEFT_RETURN_IF_ERROR(session->Run(feeds, {}, {train->name()}, nullptr));
  }
  std::vector<Tensor> values;
  WEFT_RETURN_IF_ERROR(session->Run({}, {NameOf(table.value), NameOf(bias.value)}, {}, &values));
  return values;
}

TEST(LearningRateTest, MayBeATensorOfEachStep) {
  for (const OptimizerCase& which : kCases) {
    SCOPED_TRACE(which.name);
    const auto number = Train(which, {0.125, 0.125}, false);
    const auto same = Train(which, {0.125, 0.125}, true);
    const auto other = Train(which, {0.125, 0.5}, true);
    ASSERT_TRUE(number.ok()) << number.status();
    ASSERT_TRUE(same.ok()) << same.status();
    ASSERT_TRUE(other.ok()) << other.status();
    for (int v = 0; v < 2; ++v) {
      bool differs = false;
      for (int64_t i = 0; i < (*number)[v].num_elements(); ++i) {
        EXPECT_FLOAT_EQ((*number)[v].data<float>()[i], (*same)[v].data<float>()[i]);
        differs |= (*number)[v].data<float>()[i] != (*other)[v].data<float>()[i];
      }
      EXPECT_TRUE(differs);
    }
  }
}

TEST(LearningRateTest, MustBeAFloatingPointScalar) {
  for (const Tensor& wrong : {Tensor::Vector<float>({1, 2}), Tensor::Scalar<int32_t>(1)}) {
    Program program;
    GraphBuilder& b = program.builder();
    const Variable w = program.AddVariable("w", DType::kFloat, {2}, Ones());
    const Endpoint loss = b.Op("L2Loss", {w.value});
    const Status status =
        GradientDescent(b.Constant(wrong, "rate"))->Minimize(program, loss).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("'rate'"), std::string::npos) << status;
  }
}

// first = a random number, second = twice what the first begins with.
class InitializedValueTest : public ::testing::Test {
 protected:
  Program program_;
  GraphBuilder& b_ = program_.builder();
  Variable first_ = program_.AddVariable("first", DType::kFloat, {3}, RandomNormal(0, 1));
  Variable second_ = program_.AddVariable(
      "second", DType::kFloat, {3}, [this](GraphBuilder& b, DType, const Shape&) {
        return b.Op("Mul", {program_.InitializedValue(first_), b.Scalar<float>(2)});
      });
  Variable third_ = program_.AddVariable(
      "third", DType::kFloat, {3},
      [this](GraphBuilder&, DType, const Shape&) { return program_.InitializedValue(second_); });

  void ExpectTwice(session::Session& session) {
    std::vector<Tensor> v;
    ASSERT_TRUE(
        session.Run({}, {NameOf(first_.value), NameOf(second_.value), NameOf(third_.value)}, {}, &v)
            .ok());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(2 * v[0].data<float>()[i], v[1].data<float>()[i]);
      EXPECT_EQ(v[1].data<float>()[i], v[2].data<float>()[i]);
    }
  }
};

TEST_F(InitializedValueTest, ComesAfterTheOtherVariable) {
  Node* init = program_.InitializeVariables();
  auto session = SessionOf(program_);
  ASSERT_TRUE(session.ok()) << session.status();
  // Again: what the variable held before must not be what the others begin with.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE((*session)->Run({}, {}, {init->name()}, nullptr).ok());
    ExpectTwice(**session);
  }
}

TEST_F(InitializedValueTest, LeavesTheOtherVariableAsItIs) {
  Node* change = b_.AddNode("AssignVariableOp",
                            {first_.handle, b_.Constant(Tensor::Vector<float>({1, 2, 3}))});
  auto session = SessionOf(program_);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({}, {}, {change->name()}, nullptr).ok());
  ASSERT_TRUE((*session)->Run({}, {}, {second_.initializer->name()}, nullptr).ok());
  ASSERT_TRUE((*session)->Run({}, {}, {third_.initializer->name()}, nullptr).ok());
  ExpectTwice(**session);
  std::vector<Tensor> values;
  ASSERT_TRUE((*session)->Run({}, {NameOf(first_.value)}, {}, &values).ok());
  EXPECT_EQ(values[0].data<float>()[2], 3);
}

TEST_F(InitializedValueTest, StandsInForAVariableWithoutOne) {
  auto session = SessionOf(program_);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run({}, {}, {second_.initializer->name()}, nullptr).ok());
  std::vector<Tensor> values;
  EXPECT_FALSE((*session)->Run({}, {NameOf(first_.value)}, {}, &values).ok());
  EXPECT_TRUE((*session)->Run({}, {NameOf(second_.value)}, {}, &values).ok());
}

}  // namespace
}  // namespace weft::train
