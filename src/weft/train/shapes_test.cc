// SPDX-License-Identifier: Apache-2.0
// What a program that is built wrong says, and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/train/gradients.h"
#include "weft/train/layers.h"
#include "weft/train/program.h"

namespace weft::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ShapesTest : public ::testing::Test {
 protected:
  Endpoint Input(const char* name, PartialShape shape, DType dtype = DType::kFloat) {
    return b_.Op("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name);
  }
  Program program_;
  GraphBuilder& b_ = program_.builder();
};

TEST_F(ShapesTest, AProductOfMatricesThatDoNotFit) {
  b_.PushName("model");
  b_.Op("MatMul", {Input("x", {2, 3}), Input("w", {4, 5})}, {}, "logits");
  EXPECT_EQ(b_.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(b_.status().message(), AllOf(HasSubstr("Node 'model/logits': op MatMul"),
                                           HasSubstr("a [2,3] of 'model/x', b [4,5] of 'model/w'"),
                                           HasSubstr("must be equal")));
}

TEST_F(ShapesTest, WhatAVariableHoldsIsKnownThroughItsHandle) {
  const Variable table = program_.AddVariable("table", DType::kFloat, {10, 4}, Zeros());
  EXPECT_EQ(b_.ShapeOf(table.value), PartialShape({10, 4}));
  const Endpoint ids = Input("ids", {-1, 3}, DType::kInt64);
  const Endpoint rows = EmbeddingLookup(b_, {table}, ids);
  EXPECT_EQ(b_.ShapeOf(rows), PartialShape({-1, 3, 4}));
  ASSERT_TRUE(b_.ok()) << b_.status();
  b_.AddNode("AssignVariableOp", {table.handle, Input("new", {10, 5})}, {}, "assign");
  EXPECT_THAT(b_.status().message(), HasSubstr("Node 'assign'"));
}

TEST_F(ShapesTest, AConstantShapeIsToldWithItsValues) {
  const Endpoint shape = b_.Constant(Tensor::Vector<int32_t>({4, 2}), "shape");
  b_.Op("Reshape", {Input("x", {2, 3}), shape}, {}, "bent");
  EXPECT_THAT(b_.status().message(), AllOf(HasSubstr("'bent'"), HasSubstr("[4 2]")));
}

TEST_F(ShapesTest, UnknownSizesFitUntilTheyAreKnown) {
  const Endpoint x = Input("x", PartialShape());
  const Endpoint w = Input("w", {-1, 5});
  const Endpoint y = b_.Op("MatMul", {x, w});
  EXPECT_EQ(b_.ShapeOf(y), PartialShape({-1, 5}));
  ASSERT_TRUE(AddGradients(b_, {y}, {x, w}).ok());
  EXPECT_TRUE(b_.ok()) << b_.status();
}

}  // namespace
}  // namespace weft::train
