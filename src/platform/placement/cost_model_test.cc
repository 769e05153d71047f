// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/cost_model.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "platform/placement/cost_file.h"
#include "platform/placement/models.h"
#include "platform/placement/placer.h"

namespace weft::platform {
namespace {

// Ops whose time is a law of their sizes that no data sheet knows, with a tenth of noise.
StepGraph Measured(const std::string& name, uint64_t seed) {
  PlacementRandom random(seed);
  StepGraph step;
  step.name = name;
  for (int i = 0; i < 300; ++i) {
    const bool is_product = i % 3 == 0;
    const double size = std::exp(8 + 10 * random.Part());
    StepOp op = {.name = absl::StrCat("op_", i), .op = is_product ? "MatMul" : "Tanh"};
    op.flops = is_product ? size * 30 : size;
    op.bytes = size * 8;
    op.output_bytes = size * 4;
    const double law = is_product ? 4e-6 + op.flops / 3e10 : 2e-6 + 9e-9 * size;
    op.seconds = law * (0.95 + 0.1 * random.Part());
    AddTensor(AddOp(op, {}, &step), op.output_bytes, &step);
  }
  return step;
}

TEST(CostModelTest, LearnsWhatDataSheetsDoNotKnow) {
  const DeviceProfile here = CpuProfile(2, 0);
  const StepGraph a = Measured("a", 1);
  const StepGraph b = Measured("b", 2);
  const StepGraph c = Measured("c", 3);
  for (const HeldOutError& error : CrossValidate({&a, &b, &c}, here, 20e-6)) {
    EXPECT_GT(error.ops, 100) << error.step;
    EXPECT_LT(error.op_error, 0.20) << error.step;
    EXPECT_LT(error.step_error, 0.10) << error.step;
    EXPECT_GT(error.roofline_step_error, error.step_error) << error.step;
  }
  // With one step alone, its own ops are held out in turn.
  EXPECT_LT(CrossValidate({&a}, here, 20e-6)[0].op_error, 0.25);
}

// Steps that weft ran (bench/placement_costs.py wrote the files; one thread, two busy processors).
TEST(CostModelTest, PredictsStepsOfWeftThatItNeverSaw) {
  RealFileSystem files;
  std::vector<StepGraph> steps;
  for (const char* const name :
       {"mlp", "deep_mlp", "wide_mlp", "small_mlp", "attention", "small_attention"}) {
    const std::string path = absl::StrCat(WEFT_PLACEMENT_DATA, "/", name, ".json");
    const StatusOr<std::string> text = ReadFile(files, path);
    ASSERT_TRUE(text.ok()) << text.status();
    const StatusOr<CostFile> costs = ParseCostFile(*text, path);
    ASSERT_TRUE(costs.ok()) << costs.status();
    const StatusOr<StepGraph> step = MakeStepGraph(*costs, name, OpTime::kLeast);
    ASSERT_TRUE(step.ok()) << step.status();
    // A step on one device is its ops, one after another.
    double ops = 0;
    for (const OpCost& op : costs->ops) ops += op.seconds;
    EXPECT_NEAR(ops / costs->step_seconds, 1, 0.1) << name;
    steps.push_back(*step);
  }
  std::vector<const StepGraph*> pointers;
  for (const StepGraph& step : steps) pointers.push_back(&step);
  double step_error = 0;
  double op_error = 0;
  for (const HeldOutError& error : CrossValidate(pointers, CpuProfile(2, 0), 20e-6)) {
    EXPECT_LT(error.step_error, 0.20) << error.step;
    EXPECT_LT(error.step_error, error.roofline_step_error) << error.step;
    step_error += error.step_error / static_cast<double>(steps.size());
    op_error += error.op_error / static_cast<double>(steps.size());
  }
  EXPECT_LT(step_error, 0.10);
  EXPECT_LT(op_error, 0.20);
}

TEST(CostModelTest, MeasuredTimesGoBeforeLearnedOnes) {
  const DeviceProfile here = CpuProfile(2, 0);
  const StepGraph step = Measured("a", 1);
  const CostModel model = CostModel::Fit({&step}, here);
  EXPECT_TRUE(model.is_fitted());
  EXPECT_DOUBLE_EQ(model.Seconds(step.ops[5], here), step.ops[5].seconds);
  // Twice the processors, half the time of what computes.
  StepOp large = {.name = "large", .op = "MatMul", .flops = 1e12, .bytes = 1e6, .seconds = 10};
  EXPECT_NEAR(model.Seconds(large, CpuProfile(4, 0)), 5, 0.01);
  // Of other kinds of devices it learned nothing.
  EXPECT_DOUBLE_EQ(model.Seconds(large, GpuProfile("V100")),
                   RooflineSeconds(large, GpuProfile("V100")));
  // An op that it never saw is like the others.
  const StepOp unknown = {.name = "u", .op = "Unheard", .flops = 1e8, .bytes = 1e6};
  EXPECT_GT(model.Predict(unknown, here), 0);
  EXPECT_FALSE(CostModel::Fit({}, here).is_fitted());
}

TEST(ModelsTest, WorkIsAsPublished) {
  // 3.8e9 products and sums of ResNet-50's forward pass, 15.5e9 of VGG-16's (He et al., CVPR 2016,
  // table 1; figure 3), two flops each; training does three times as much.
  const auto flops_of = [](const char* name) {
    const StatusOr<StepGraph> step = MakeModel(name, 1);
    double flops = 0;
    for (const StepOp& op : step->ops) {
      if (op.op == "Conv2D" || op.op == "MatMul") flops += op.flops;
    }
    return flops;
  };
  EXPECT_NEAR(flops_of("resnet50") / 2, 3.8e9, 0.4e9);
  EXPECT_NEAR(flops_of("vgg16") / 2, 15.4e9, 0.4e9);
  // 25.5 and 138 million parameters.
  EXPECT_NEAR(MakeModel("resnet50", 0)->StateBytes() / 4, 25.5e6, 0.4e6);
  EXPECT_NEAR(MakeModel("vgg16", 0)->StateBytes() / 4, 138.3e6, 0.5e6);
  EXPECT_FALSE(MakeModel("resnet", 0).ok());
  EXPECT_FALSE(MakeModel("mlp", -1).ok());
}

}  // namespace
}  // namespace weft::platform
