// SPDX-License-Identifier: Apache-2.0
// Estimators in C++ for estimator_test.py to compare:
//
//   estimator_tool CASE COMMAND MODEL_DIR DATA [ARGUMENT]
//
// COMMAND: train (ARGUMENT: steps), evaluate, predict, export (ARGUMENT: the folder), names, or
// warm (ARGUMENT: a checkpoint that is begun with; trains no step but one). DATA is a TFRecord file
// of tensorflow.Example; the cases are those of estimator_cases.py. Prints one JSON object, or the
// error and exits 1.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "net/json.h"
#include "weft/estimator.h"

namespace weft::estimator {
namespace {

using CaseMaker = std::function<Estimator(RunConfig, WarmStart)>;

const std::vector<std::string> kCities = {"Aachen", "Bonn", "Chur", "Delft"};

Column Age() { return NumericColumn("age"); }
Column Size() {
  return NumericColumn("size", {.shape = {2}, .normalizer = [](GraphBuilder& b, Endpoint x) {
                                  return b.Op("Mul", {x, b.Scalar<float>(0.5f)});
                                }});
}
Column Ages() { return BucketizedColumn(Age(), {-0.5f, 0.2f, 1.0f}); }
Column Sizes() { return BucketizedColumn(Size(), {0.0f, 0.4f}); }
Column City() {
  return CategoricalColumnWithVocabularyList("city", kCities, {.num_oov_buckets = 2});
}
Column KnownCity() { return CategoricalColumnWithVocabularyList("city", kCities); }
Column Words() { return CategoricalColumnWithHashBucket("words", 20); }
Column Number() { return CategoricalColumnWithIdentity("number", 6); }
Column Codes() { return CategoricalColumnWithHashBucket("codes", 7, DType::kInt64); }
Column Levels() {
  return CategoricalColumnWithVocabularyNumbers("number", {3, 1, 4}, {.default_value = 1});
}
Column Cross() { return CrossedColumn({"city", Ages()}, 30); }
Column WordCross() { return CrossedColumn({"words", "city", Number()}, 50); }
Column WeightedWords() { return WeightedCategoricalColumn(Words(), "word_weights"); }

std::vector<Column> DeepColumns() {
  return {Age(), Size(), EmbeddingColumn(Words(), 4), IndicatorColumn(City())};
}
std::vector<Column> ManyDeepColumns() {
  return {Ages(),
          Sizes(),
          EmbeddingColumn(Words(), 3, {.combiner = "sqrtn"}),
          EmbeddingColumn(City(), 2, {.combiner = "sum", .max_norm = 0.5}),
          EmbeddingColumn(WordCross(), 3),
          EmbeddingColumn(Codes(), 2),
          EmbeddingColumn(WeightedWords(), 2, {.combiner = "sqrtn"}),
          IndicatorColumn(Number())};
}
std::vector<Column> WideColumns() {
  return {Age(), Ages(), KnownCity(), Words(), Number(), Cross(), WordCross()};
}

const std::map<std::string, CaseMaker>& Cases() {
  static const auto* const cases = new std::map<std::string, CaseMaker>{
      {"dnn_classifier",
       [](RunConfig c, WarmStart w) {
         return DNNClassifier({.hidden_units = {8, 4}, .feature_columns = DeepColumns()},
                              {.config = c, .warm_start = w});
       }},
      {"dnn_classes",
       [](RunConfig c, WarmStart w) {
         return DNNClassifier(
             {.hidden_units = {6},
              .feature_columns = ManyDeepColumns(),
              .optimizer = [] { return train::Adam(0.01); },
              .activation = train::Tanh},
             {.n_classes = 3, .head = {.weight_column = "weight"}, .config = c, .warm_start = w});
       }},
      {"dnn_words",
       [](RunConfig c, WarmStart w) {
         return DNNClassifier({.hidden_units = {6},
                               .feature_columns = DeepColumns(),
                               .optimizer = [] { return train::Momentum(0.05, 0.9); }},
                              {.n_classes = 3,
                               .head = {.loss_reduction = LossReduction::kSumOverBatchSize,
                                        .label_vocabulary = {"red", "green", "blue"}},
                               .config = c,
                               .warm_start = w});
       }},
      {"dnn_regressor",
       [](RunConfig c, WarmStart w) {
         return DNNRegressor({.hidden_units = {8, 4},
                              .feature_columns = DeepColumns(),
                              .optimizer = [] { return train::RmsProp(0.01); }},
                             {.label_dimension = 2, .config = c, .warm_start = w});
       }},
      {"dnn_batch_norm",
       [](RunConfig c, WarmStart w) {
         return DNNClassifier({.hidden_units = {8, 4},
                               .feature_columns = DeepColumns(),
                               .optimizer = [] { return train::GradientDescent(0.02); },
                               .batch_norm = true},
                              {.config = c, .warm_start = w});
       }},
      {"linear_classifier",
       [](RunConfig c, WarmStart w) {
         return LinearClassifier({.feature_columns = WideColumns()},
                                 {.config = c, .warm_start = w});
       }},
      {"linear_mean",
       [](RunConfig c, WarmStart w) {
         return LinearClassifier(
             {.feature_columns = {Words(), Size(), Levels()}, .sparse_combiner = "mean"},
             {.n_classes = 3, .config = c, .warm_start = w});
       }},
      {"linear_sqrtn",
       [](RunConfig c, WarmStart w) {
         return LinearRegressor({.feature_columns = {WeightedWords(), Sizes(), Codes()},
                                 .optimizer = [] { return train::GradientDescent(0.01); },
                                 .sparse_combiner = "sqrtn"},
                                {.config = c, .warm_start = w});
       }},
      {"wide_and_deep",
       [](RunConfig c, WarmStart w) {
         return DNNLinearCombinedClassifier(
             {.feature_columns = WideColumns()},
             {.hidden_units = {8, 4}, .feature_columns = DeepColumns()},
             {.config = c, .warm_start = w});
       }},
      {"wide_and_deep_regressor",
       [](RunConfig c, WarmStart w) {
         return DNNLinearCombinedRegressor(
             {.feature_columns = {Cross(), KnownCity()},
              .optimizer = [] { return train::Ftrl(0.05, -0.5, 0.1, 0.001, 0.002); }},
             {.hidden_units = {4},
              .feature_columns = {Age(), EmbeddingColumn(Words(), 2)},
              .optimizer = [] { return train::Adagrad(0.05); }},
             {.head = {.weight_column = "weight"}, .config = c, .warm_start = w});
       }},
  };
  return *cases;
}

ExampleSpec Spec() {
  const auto fixed = [](DType dtype, Shape shape) {
    return ExampleFeature{.dtype = dtype, .is_sparse = false, .shape = shape};
  };
  return {{"age", fixed(DType::kFloat, {1})},   {"size", fixed(DType::kFloat, {2})},
          {"city", fixed(DType::kString, {1})}, {"number", {.dtype = DType::kInt64}},
          {"words", {.dtype = DType::kString}}, {"word_weights", {.dtype = DType::kFloat}},
          {"codes", {.dtype = DType::kInt64}},  {"weight", fixed(DType::kFloat, {1})}};
}

// Batches of six records, in their order; for training again and again.
InputFn Records(const std::string& case_name, const std::string& path) {
  return [case_name, path](const InputContext& input) -> StatusOr<FeatureBatch> {
    GraphBuilder& b = input.b();
    train::Dataset records = train::Dataset::Records(b, b.Scalar<std::string>(path));
    if (input.mode == Mode::kTrain) records = records.Repeat();
    WEFT_ASSIGN_OR_RETURN(FeatureBatch batch, BatchesOf(input, records.Batch(6), {"record"}));
    ExampleSpec spec = Spec();
    const std::string label = "label_of_" + case_name;
    const bool is_text = case_name == "dnn_words";
    const bool is_real =
        case_name.find("regressor") != std::string::npos || case_name == "linear_sqrtn";
    spec[label] = {.dtype = is_text   ? DType::kString
                            : is_real ? DType::kFloat
                                      : DType::kInt64,
                   .is_sparse = false,
                   .shape = Shape{case_name == "dnn_regressor" ? 2 : 1}};
    Features features = ParseExamples(b, batch.features["record"].values, spec);
    FeatureBatch parsed;
    if (input.mode != Mode::kPredict) parsed.labels = features[label].values;
    features.erase(label);
    parsed.features = std::move(features);
    return parsed;
  };
}

// Notes the loss of each step.
class Losses final : public train::Hook {
 public:
  std::vector<std::string> Fetches() override { return {"loss:0"}; }
  Status AfterRun(const train::StepContext& context) override {
    values.Append(static_cast<double>((*context.values)[0].scalar<float>()));
    return absl::OkStatus();
  }
  Json values = Json::MakeArray();
};

Json Numbers(const Tensor& tensor) {
  Json list = Json::MakeArray();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.dtype() == DType::kFloat) list.Append(static_cast<double>(tensor.data<float>()[i]));
    if (tensor.dtype() == DType::kInt64) list.Append(tensor.data<int64_t>()[i]);
    if (tensor.dtype() == DType::kInt32) list.Append(int64_t{tensor.data<int32_t>()[i]});
    if (tensor.dtype() == DType::kString) list.Append(tensor.data<std::string>()[i]);
  }
  return list;
}

StatusOr<Json> Run(const std::vector<std::string>& words) {
  const std::string &name = words[0], &command = words[1], &folder = words[2], &data = words[3];
  const std::string argument = words.size() > 4 ? words[4] : "";
  const auto maker = Cases().find(name);
  if (maker == Cases().end()) return NotFound("There is no case '", name, "'");
  RunConfig config{.model_dir = folder};
  WarmStart warm;
  if (command == "warm") warm.checkpoint = argument;
  Estimator estimator = maker->second(config, warm);
  const InputFn input = Records(name, data);
  Json out = Json::MakeObject();
  if (command == "train" || command == "warm") {
    int64_t steps = 1;
    if (command == "train" && !absl::SimpleAtoi(argument, &steps)) {
      return InvalidArgument("steps '", argument, "'");
    }
    Losses losses;
    WEFT_ASSIGN_OR_RETURN(const int64_t step,
                          estimator.Train(input, {.steps = steps, .hooks = {&losses}}));
    out.Set("step", step);
    out.Set("losses", losses.values);
  } else if (command == "evaluate") {
    WEFT_ASSIGN_OR_RETURN(const EvalResult result, estimator.Evaluate(input));
    for (const auto& [metric, value] : result) out.Set(metric, value);
  } else if (command == "predict") {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Predictions> all, estimator.Predict(input));
    for (const auto& [key, unused] : all[0]) {
      Json rows = Json::MakeArray();
      for (const Predictions& batch : all) {
        const Json numbers = Numbers(batch.at(key));
        for (const Json& number : numbers.items()) rows.Append(number);
      }
      out.Set(key, rows);
    }
  } else if (command == "export") {
    WEFT_ASSIGN_OR_RETURN(const std::string made,
                          estimator.ExportSavedModel(argument, ParsingServingInput(Spec())));
    out.Set("folder", made);
  } else if (command == "names") {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, estimator.VariableNames());
    for (const std::string& variable : names) out.Set(variable, true);
  } else {
    return InvalidArgument("There is no command '", command, "'");
  }
  return out;
}

}  // namespace
}  // namespace weft::estimator

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: estimator_tool CASE COMMAND MODEL_DIR DATA [ARGUMENT]\n");
    return 2;
  }
  const auto out = weft::estimator::Run({argv + 1, argv + argc});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", std::string(out.status().message()).c_str());
    return 1;
  }
  std::printf("%s\n", out->Dump().c_str());
  return 0;
}
