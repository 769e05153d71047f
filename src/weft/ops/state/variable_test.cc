// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/variable.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"
#include "weft/ops/testing/variables_test.h"

namespace weft::ops::state {
namespace {

using ::testing::ElementsAre;
using testing::HandleOf;
using ::testing::HasSubstr;
using testing::KernelRunner;
using testing::RunOp;
using testing::TestDevice;

// Its value and the tensor share their bytes.
Ref<Variable> VariableThatShares(const Tensor& value) {
  auto variable = MakeRef<Variable>("w", value.dtype(), value.shape());
  variable->Assign(value);
  return variable;
}

std::vector<float> Floats(const Variable& variable) {
  StatusOr<Tensor> value = variable.Read();
  if (!value.ok()) return {};
  return {value->span<float>().begin(), value->span<float>().end()};
}

TEST(VariableV2Test, NodesOfOneNameShareTheVariableUntilTheContainerIsCleaned) {
  TestDevice device;
  const AttrMap attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2}}, {"shared_name", "w"}};
  auto a = KernelRunner::Make("VariableV2", {}, attrs);
  auto b = KernelRunner::Make("VariableV2", {}, attrs);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  (*a)->environment().device = device.get();
  (*b)->environment().device = device.get();
  ASSERT_TRUE((*a)->Run().ok());
  ASSERT_TRUE((*b)->Run().ok());
  const Ref<Variable> first = (*a)->outputs()[0].variable;
  EXPECT_EQ(first, (*b)->outputs()[0].variable);
  first->Assign(Tensor::Vector<float>({1, 2}));

  device.get()->resources().Cleanup("localhost");
  EXPECT_FALSE(first->IsInitialized());
  ASSERT_TRUE((*a)->Run().ok());
  EXPECT_FALSE((*a)->outputs()[0].variable == first);
  EXPECT_FALSE((*a)->outputs()[0].variable->IsInitialized());
}

TEST(VariableV2Test, ContainersAndTypesKeepVariablesApart) {
  TestDevice device;
  auto plain = KernelRunner::Make("VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", Shape{}}});
  auto other = KernelRunner::Make(
      "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", Shape{}}, {"container", "mine"}});
  auto typed = KernelRunner::Make("VariableV2", {}, {{"dtype", DType::kInt32}, {"shape", Shape{}}});
  ASSERT_TRUE(plain.ok() && other.ok() && typed.ok());
  for (KernelRunner* runner : {plain->get(), other->get(), typed->get()}) {
    runner->environment().device = device.get();
  }
  ASSERT_TRUE((*plain)->Run().ok());
  ASSERT_TRUE((*other)->Run().ok());
  EXPECT_FALSE((*plain)->outputs()[0].variable == (*other)->outputs()[0].variable);
  EXPECT_EQ((*typed)->Run().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AssignTest, ChecksTheShapeUnlessToldNotTo) {
  auto variable = MakeRef<Variable>("w", DType::kFloat, Shape{2});
  const Tensor wrong = Tensor::Vector<float>({1});
  EXPECT_THAT(
      RunOp("Assign", {variable, wrong}).status().message(),
      HasSubstr("Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [1]"));
  EXPECT_FALSE(variable->IsInitialized());
  EXPECT_TRUE(RunOp("Assign", {variable, wrong}, {{"validate_shape", false}}).ok());
  EXPECT_THAT(Floats(*variable), ElementsAre(1));
  // From now on the shape that it has counts.
  EXPECT_FALSE(RunOp("Assign", {variable, Tensor::Vector<float>({1, 2})}).ok());
}

TEST(AssignTest, WritesIntoItsOwnBytesAndNeverIntoThoseOfASnapshot) {
  auto variable = VariableThatShares(*Tensor::Vector<float>({1, 2}).Clone());
  const std::byte* bytes = variable->Read()->bytes();
  ASSERT_TRUE(RunOp("Assign", {variable, Tensor::Vector<float>({3, 4})}).ok());
  EXPECT_EQ(variable->Read()->bytes(), bytes);
  const Tensor snapshot = *variable->Read();
  ASSERT_TRUE(RunOp("Assign", {variable, Tensor::Vector<float>({5, 6})}).ok());
  EXPECT_THAT(snapshot.span<float>(), ElementsAre(3, 4));
  EXPECT_THAT(Floats(*variable), ElementsAre(5, 6));
}

TEST(AssignTest, TakesStrings) {
  auto variable = MakeRef<Variable>("w", DType::kString, Shape{1});
  ASSERT_TRUE(RunOp("Assign", {variable, Tensor::Vector<std::string>({"a"})}).ok());
  ASSERT_TRUE(RunOp("Assign", {variable, Tensor::Vector<std::string>({"b"})}).ok());
  EXPECT_EQ(variable->Read()->data<std::string>()[0], "b");
}

TEST(AssignAddTest, AddsInPlaceAndCopiesOnlyWhileASnapshotIsAlive) {
  auto variable = VariableThatShares(*Tensor::Vector<float>({1, 2}).Clone());
  {
    const Tensor snapshot = *variable->Read();
    ASSERT_TRUE(RunOp("AssignAdd", {variable, Tensor::Vector<float>({10, 20})}).ok());
    EXPECT_THAT(snapshot.span<float>(), ElementsAre(1, 2));
    EXPECT_FALSE(variable->Read()->SharesBufferWith(snapshot));
  }
  const std::byte* bytes = variable->Read()->bytes();
  ASSERT_TRUE(RunOp("AssignSub", {variable, Tensor::Vector<float>({1, 1})}).ok());
  EXPECT_EQ(variable->Read()->bytes(), bytes);
  EXPECT_THAT(Floats(*variable), ElementsAre(10, 21));
}

// As a step finds tables whose checkpoint is being written: several threads copy those.
TEST(ScatterUpdateTest, WritesIntoACopyOfALargeTableThatASnapshotHolds) {
  constexpr int64_t kWidth = int64_t{1} << 20;
  auto variable = VariableThatShares(*Tensor::Zeros(DType::kFloat, Shape{3, kWidth}));
  const Tensor snapshot = *variable->Read();
  const Tensor row =
      Tensor::FromSpan<float>(Shape{1, kWidth}, std::vector<float>(static_cast<size_t>(kWidth), 7));
  ASSERT_TRUE(RunOp("ScatterUpdate", {variable, Tensor::Vector<int32_t>({1}), row}).ok());
  const auto count = [](const Tensor& table, float value) {
    const absl::Span<const float> numbers = table.span<float>();
    return std::count(numbers.begin(), numbers.end(), value);
  };
  EXPECT_EQ(count(snapshot, 0), 3 * kWidth);
  EXPECT_EQ(count(*variable->Read(), 0), 2 * kWidth);
  EXPECT_EQ(count(*variable->Read(), 7), kWidth);
}

TEST(AssignAddTest, SaysWhatIsWrong) {
  auto variable = MakeRef<Variable>("w", DType::kFloat);
  const Status fresh = RunOp("AssignAdd", {variable, Tensor::Scalar<float>(1)}).status();
  EXPECT_EQ(fresh.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(fresh.message(), HasSubstr("Attempting to use uninitialized value w"));
  variable->Assign(Tensor::Scalar<float>(1));
  EXPECT_THAT(RunOp("AssignAdd", {variable, Tensor::Vector<float>({1})}).status().message(),
              HasSubstr("Parameters and update must be the same size"));
}

TEST(AssignAddTest, IntegersWrap) {
  auto variable = VariableThatShares(Tensor::Vector<int32_t>({2147483647}));
  ASSERT_TRUE(RunOp("AssignAdd", {variable, Tensor::Vector<int32_t>({1})}).ok());
  EXPECT_EQ(variable->Read()->data<int32_t>()[0], -2147483647 - 1);
}

TEST(CountUpToTest, CountsUntilTheLimit) {
  auto variable = VariableThatShares(Tensor::Scalar<int64_t>(1));
  auto outputs = RunOp("CountUpTo", {variable}, {{"limit", 2}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].scalar<int64_t>(), 1);
  const Status full = RunOp("CountUpTo", {variable}, {{"limit", 2}}).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(full.message(), HasSubstr("Reached limit of 2"));
}

TEST(TemporaryVariableTest, LivesInTheStepUntilDestroyed) {
  const AttrMap attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2}}, {"var_name", "t"}};
  auto create = KernelRunner::Make("TemporaryVariable", {}, attrs);
  ASSERT_TRUE(create.ok());
  ASSERT_TRUE((*create)->Run().ok());
  const Ref<Variable> variable = (*create)->outputs()[0].variable;
  EXPECT_EQ((*create)->Run().status().code(), absl::StatusCode::kAlreadyExists);
  variable->Assign(Tensor::Vector<float>({3, 4}));
  auto destroy = KernelRunner::Make("DestroyTemporaryVariable", {variable}, {{"var_name", "t"}});
  ASSERT_TRUE(destroy.ok());
  EXPECT_EQ((*destroy)->Run().status().code(), absl::StatusCode::kNotFound);
  (*destroy)->environment().step_resources = (*create)->environment().step_resources;
  auto outputs = (*destroy)->Run();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].span<float>(), ElementsAre(3, 4));
  EXPECT_TRUE((*create)->Run().ok());
}

TEST(ResourceVariableTest, IsCreatedByItsHandleAndReadAfterTheFirstAssignment) {
  TestDevice device;
  auto handle = KernelRunner::Make(
      "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{2}}, {"shared_name", "w"}});
  ASSERT_TRUE(handle.ok()) << handle.status();
  (*handle)->environment().device = device.get();
  const Tensor w = (*(*handle)->Run())[0];
  const auto on_device = [&](const char* op, std::vector<testing::TestInput> inputs,
                             AttrMap attrs = {}) -> StatusOr<std::vector<Tensor>> {
    WEFT_ASSIGN_OR_RETURN(auto runner, KernelRunner::Make(op, std::move(inputs), std::move(attrs)));
    runner->environment().device = device.get();
    return runner->Run();
  };
  EXPECT_FALSE((*on_device("VarIsInitializedOp", {w}))[0].scalar<bool>());
  const Status fresh = on_device("ReadVariableOp", {w}, {{"dtype", DType::kFloat}}).status();
  EXPECT_EQ(fresh.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(fresh.message(), HasSubstr("uninitialized"));

  ASSERT_TRUE(on_device("AssignVariableOp", {w, Tensor::Vector<float>({1, 2})}).ok());
  EXPECT_TRUE((*on_device("VarIsInitializedOp", {w}))[0].scalar<bool>());
  ASSERT_TRUE(on_device("AssignAddVariableOp", {w, Tensor::Vector<float>({1, 1})}).ok());
  EXPECT_THAT((*on_device("ReadVariableOp", {w}, {{"dtype", DType::kFloat}}))[0].span<float>(),
              ElementsAre(2, 3));
  EXPECT_THAT((*on_device("VariableShape", {w}))[0].span<int32_t>(), ElementsAre(2));
  EXPECT_THAT(on_device("ReadVariableOp", {w}, {{"dtype", DType::kInt32}}).status().message(),
              HasSubstr("with wrong dtype"));

  // A handle from another process carries names only.
  const Tensor foreign = Tensor::Scalar(ResourceHandle{.container = "localhost", .name = "w"});
  EXPECT_TRUE((*on_device("VarIsInitializedOp", {foreign}))[0].scalar<bool>());

  ASSERT_TRUE(on_device("DestroyResourceOp", {w}).ok());
  EXPECT_FALSE((*on_device("VarIsInitializedOp", {foreign}))[0].scalar<bool>());
  EXPECT_EQ(
      on_device("DestroyResourceOp", {foreign}, {{"ignore_lookup_error", false}}).status().code(),
      absl::StatusCode::kNotFound);
  ASSERT_TRUE(on_device("AssignVariableOp", {foreign, Tensor::Scalar<float>(7)}).ok());
  const Tensor again = (*(*handle)->Run())[0];
  EXPECT_EQ((*on_device("ReadVariableOp", {again}, {{"dtype", DType::kFloat}}))[0].scalar<float>(),
            7);
}

TEST(ResourceVariableTest, UpdatesRefuseOtherShapesAndTypes) {
  auto variable = VariableThatShares(Tensor::Vector<float>({1, 2}));
  EXPECT_THAT(
      RunOp("AssignAddVariableOp", {HandleOf(variable), Tensor::Vector<float>({1})})
          .status()
          .message(),
      HasSubstr("Cannot update variable with shape [2] using a Tensor with shape [1], shapes "
                "must be equal."));
  EXPECT_EQ(
      RunOp("AssignVariableOp", {HandleOf(variable), Tensor::Vector<int32_t>({1})}).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(RunOp("AssignVariableOp", {HandleOf(variable), Tensor::Vector<float>({1})},
                    {{"validate_shape", true}})
                  .status()
                  .message(),
              HasSubstr("with wrong shape. Expected [2] got [1]"));
  EXPECT_EQ(RunOp("ReadVariableOp", {Tensor::Vector<float>({1})}, {{"dtype", DType::kFloat}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::ops::state
