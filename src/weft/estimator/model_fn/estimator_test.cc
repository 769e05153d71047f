// SPDX-License-Identifier: Apache-2.0
// What estimators say of wrong input; tests/estimator/estimator_test.py holds their numbers against
// TensorFlow's.
#include "weft/estimator/model_fn/estimator.h"

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/estimator/model_fn/premade.h"
#include "weft/estimator/model_fn/train_and_evaluate.h"

namespace weft::estimator {
namespace {

using ::testing::HasSubstr;

class EstimatorTest : public ::testing::Test {
 protected:
  EstimatorTest() {
    std::string folder = ::testing::TempDir() + "/estimator-XXXXXX";
    folder_ = mkdtemp(folder.data()) != nullptr ? folder : "";
  }
  ~EstimatorTest() override { std::filesystem::remove_all(folder_); }

  RunConfig Config(const std::string& name = "model") const {
    return {.model_dir = folder_ + "/" + name, .seed = 1, .log_step_count_steps = 0};
  }
  // age, city, label: four examples, again and again when training.
  static InputFn Rows(std::vector<int64_t> labels = {0, 1, 1, 0}) {
    return [labels](const InputContext& input) {
      GraphBuilder& b = input.b();
      train::Dataset rows =
          train::Dataset::Slices(b, {b.Constant(Tensor::Vector<float>({1, 2, 3, 4})),
                                     b.Constant(Tensor::Vector<std::string>({"a", "b", "a", ""})),
                                     b.Constant(Tensor::FromSpan<int64_t>(Shape{4}, labels))});
      if (input.mode == Mode::kTrain) rows = rows.Repeat();
      return BatchesOf(input, rows.Batch(2), {"age", "city", "label"}, "label");
    };
  }
  std::string ErrorOf(const std::vector<Column>& columns) const {
    Estimator linear = LinearClassifier({.feature_columns = columns}, {.config = Config("error")});
    return std::string(linear.Train(Rows(), {.steps = 1}).status().message());
  }
  std::string folder_;
};

TEST_F(EstimatorTest, NamesWhatIsWrongWithColumns) {
  EXPECT_THAT(ErrorOf({NumericColumn("height")}),
              HasSubstr("Feature 'height' is not in the input, which has age, city"));
  EXPECT_THAT(ErrorOf({NumericColumn("city")}),
              HasSubstr("Feature column 'city': the feature is string, expected numbers"));
  EXPECT_THAT(ErrorOf({CategoricalColumnWithHashBucket("age", 5)}),
              HasSubstr("Feature column 'age': feature 'age' is float, expected strings or whole"));
  EXPECT_THAT(ErrorOf({NumericColumn("age", {.shape = {3}})}), HasSubstr("expected 3 numbers"));
  EXPECT_THAT(ErrorOf({CrossedColumn({"city"}, 5)}), HasSubstr("expected two keys or more"));
  EXPECT_THAT(ErrorOf({CrossedColumn({CategoricalColumnWithHashBucket("city", 3), "age"}, 5)}),
              HasSubstr("cannot cross 'city'"));
  EXPECT_THAT(ErrorOf({BucketizedColumn(NumericColumn("age"), {3, 1})}),
              HasSubstr("expected boundaries that rise"));
  EXPECT_THAT(ErrorOf({NumericColumn("age"), NumericColumn("age")}),
              HasSubstr("two feature columns 'age'"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("no feature columns"));
  EXPECT_THAT(ErrorOf({EmbeddingColumn(CategoricalColumnWithHashBucket("city", 3), 2,
                                       {.combiner = "max"})}),
              HasSubstr("there is no combiner 'max'"));
  Estimator deep = DNNClassifier(
      {.hidden_units = {2}, .feature_columns = {CategoricalColumnWithHashBucket("city", 3)}},
      {.config = Config("deep")});
  EXPECT_THAT(deep.Train(Rows(), {.steps = 1}).status().message(),
              HasSubstr("Feature column 'city': expected a dense column"));
}

TEST_F(EstimatorTest, NamesWhatIsWrongWithLabelsAndInput) {
  const LinearOptions linear{.feature_columns = {NumericColumn("age")}};
  Estimator classes = LinearClassifier(linear, {.config = Config()});
  EXPECT_THAT(classes.Train(Rows({0, 1, 2, 0}), {.steps = 2}).status().message(),
              HasSubstr("The labels have classes outside of [0, 2)"));
  Estimator words = LinearClassifier(
      linear, {.head = {.label_vocabulary = {"no", "yes"}}, .config = Config("words")});
  EXPECT_THAT(words.Train(Rows(), {.steps = 1}).status().message(),
              HasSubstr("expected words of the label_vocabulary"));
  const InputFn wrong = [](const InputContext& input) {
    const train::Dataset rows = train::Dataset::Range(input.b(), 0, 5);
    return BatchesOf(input, rows.Batch(2), {"a", "b"});
  };
  EXPECT_THAT(classes.Train(wrong, {.steps = 1}).status().message(),
              HasSubstr("The dataset has 1 components, and there are 2 names for them: a, b"));
  EXPECT_THAT(classes.Train(Rows(), {.steps = 1, .max_steps = 1}).status().message(),
              HasSubstr("expected one of them"));
  Estimator fresh = LinearClassifier(linear, {.config = Config("fresh")});
  EXPECT_EQ(fresh.Evaluate(Rows()).status().code(), absl::StatusCode::kNotFound);
  Estimator nowhere = LinearClassifier(linear, {});
  EXPECT_THAT(nowhere.Train(Rows(), {.steps = 1}).status().message(), HasSubstr("model_dir"));
}

TEST_F(EstimatorTest, StopsWhereTheLossIsNaN) {
  const ModelFn model = [](const ModelCall& call) -> StatusOr<EstimatorSpec> {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EstimatorSpec spec;
    spec.loss = call.b().Scalar<float>(nan);
    const train::Variable step = call.program.GlobalStep();
    spec.train_op =
        call.b().AddNode("AssignAddVariableOp", {step.handle, call.b().Scalar<int64_t>(1)});
    return spec;
  };
  Estimator estimator(model, Config());
  const Status status = estimator.Train(Rows(), {.steps = 3}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("The loss is NaN at step 1"));
}

TEST_F(EstimatorTest, EndsWithTheInputAndGoesOnFromTheCheckpoint) {
  Estimator linear =
      LinearClassifier({.feature_columns = {NumericColumn("age")}}, {.config = Config()});
  const InputFn once = [](const InputContext& input) {
    InputContext as_evaluated{input.program, Mode::kEvaluate};
    return Rows()(as_evaluated);
  };
  const auto first = linear.Train(once);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, 2);
  const auto second = linear.Train(Rows(), {.steps = 3});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, 5);
  const auto done = linear.Train(Rows(), {.max_steps = 4});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(*done, 5);
  const auto none = linear.Predict(Rows(), PredictOptions{.keys = {"price"}});
  EXPECT_THAT(none.status().message(), HasSubstr("There is no prediction 'price'"));
}

TEST_F(EstimatorTest, WarmStartsSayWhatIsNotThere) {
  const LinearOptions linear{.feature_columns = {NumericColumn("age")}};
  const auto error_of = [&](const WarmStart& warm) {
    Estimator second = LinearClassifier(linear, {.config = Config("second"), .warm_start = warm});
    return std::string(second.Train(Rows(), {.steps = 1}).status().message());
  };
  EXPECT_THAT(error_of({.checkpoint = folder_ + "/nothing"}), HasSubstr("There is no checkpoint"));
  Estimator first = LinearClassifier(linear, {.config = Config("first")});
  ASSERT_TRUE(first.Train(Rows(), {.steps = 1}).ok());
  const std::string checkpoint = folder_ + "/first";
  EXPECT_THAT(error_of({.checkpoint = checkpoint, .variables = "("}), HasSubstr("is no pattern"));
  EXPECT_THAT(error_of({.checkpoint = checkpoint, .variables = "dnn"}),
              HasSubstr("no trainable variable begins with 'dnn'"));
  EXPECT_THAT(error_of({.checkpoint = checkpoint, .previous_names = {{"w", "v"}}}),
              HasSubstr("the model has no variable 'w'"));
}

}  // namespace
}  // namespace weft::estimator
