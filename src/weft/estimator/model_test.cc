// SPDX-License-Identifier: Apache-2.0
// Numbers are held against Keras in tests/estimator; here is what a program sees.
#include "weft/estimator/model.h"

#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"

#include "base/files.h"
#include "weft/estimator/callback.h"
#include "weft/estimator/convolution.h"
#include "weft/estimator/dense.h"
#include "weft/estimator/dropout.h"
#include "weft/estimator/embedding_layer.h"
#include "weft/estimator/image_layers.h"
#include "weft/estimator/keras_files.h"
#include "weft/estimator/recurrent.h"
#include "weft/estimator/reshaping.h"
#include "weft/estimator/wrappers.h"
#include "weft/train/testing/local_cluster_test.h"

namespace weft::estimator {
namespace {

using ::testing::HasSubstr;

// y = 3 a - 2 b + 1.
Examples Line(int count) {
  std::vector<float> x, y;
  for (int i = 0; i < count; ++i) {
    const auto a = static_cast<float>(i % 7) / 7, b = static_cast<float>(i % 5) / 5;
    x.insert(x.end(), {a, b});
    y.push_back(3 * a - 2 * b + 1);
  }
  return {{Tensor::FromSpan<float>({count, 2}, x)}, {Tensor::FromSpan<float>({count, 1}, y)}};
}

std::unique_ptr<Model> OneDense(const ModelOptions& options = {.seed = 1}) {
  StatusOr<std::unique_ptr<Model>> model =
      Model::Sequential(Input({2}), {Dense(1, {.name = "line"})}, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::string ErrorOf(const StatusOr<std::unique_ptr<Model>>& model) {
  return std::string(model.status().message());
}

std::string TemporaryFolder() {
  std::string folder = ::testing::TempDir() + "/models.XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

TEST(ModelTest, FitFindsALine) {
  const auto model = OneDense();
  ASSERT_TRUE(model->Compile({.optimizer = Adam(0.1), .loss = {"mse"}, .metrics = {"mae"}}).ok());
  const StatusOr<History> history =
      model->Fit(Line(70), {.batch_size = 10, .epochs = 40, .validation_split = 0.2});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epochs.size(), 40u);
  EXPECT_LT(history->values.at("val_loss").back(), 1e-3);
  EXPECT_GT(history->values.at("loss").front(), history->values.at("loss").back());
  const auto weights = model->GetWeights();
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_EQ(weights->size(), 2u);
  EXPECT_EQ((*weights)[0].name, "line/kernel");
  EXPECT_NEAR((*weights)[0].value.data<float>()[0], 3, 0.1);
  const StatusOr<Logs> logs = model->Evaluate(Line(35));
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_LT(LogOf(*logs, "mae"), 0.1);
  EXPECT_TRUE(std::isnan(LogOf(*logs, "accuracy")));
}

TEST(ModelTest, LogitsOfZeroLearnFromTheirLabels) {
  const auto model = Model::Sequential(
      Input({1}), {Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})}, {.seed = 1});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE((*model)->Compile({.optimizer = Sgd(1), .loss = {BinaryCrossentropy(true)}}).ok());
  const Tensor column = Tensor::FromSpan<float>({2, 1}, {1, 1});
  ASSERT_TRUE((*model)->TrainOnBatch({{column}, {Tensor::FromSpan<float>({2, 1}, {1, 1})}}).ok());
  const auto weights = (*model)->GetWeights();
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_FLOAT_EQ((*weights)[0].value.data<float>()[0], 0.5f);  // -(sigmoid(0) - 1)
}

TEST(ModelTest, OneSeedGivesOneTraining) {
  std::vector<double> losses;
  for (int run = 0; run < 2; ++run) {
    const auto model = Model::Sequential(
        Input({2}), {Dense(8, {.activation = "relu"}), Dropout(0.3), Dense(1)}, {.seed = 11});
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_TRUE((*model)->Compile({.loss = {"mse"}}).ok());
    const auto history = (*model)->Fit(Line(40), {.batch_size = 8, .epochs = 2});
    ASSERT_TRUE(history.ok()) << history.status();
    losses.push_back(history->values.at("loss").back());
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(ModelTest, ErrorsNameTheLayer) {
  EXPECT_THAT(ErrorOf(Model::Sequential(Input({5, 5}), {Conv2D(2, 3, {.name = "edges"})})),
              HasSubstr("Layer 'edges' (Conv2D): expected an input of rank 4"));
  EXPECT_THAT(ErrorOf(Model::Sequential(Input({4}), {Dense(2, {.activation = "rulu"})})),
              HasSubstr("Layer 'dense' (Dense): There is no activation 'rulu'"));
  EXPECT_THAT(ErrorOf(Model::Sequential(Input({4}), {Reshape({3, 2})})),
              HasSubstr("Layer 'reshape' (Reshape): input [?,4] of 4 elements"));
  EXPECT_THAT(
      ErrorOf(Model::Sequential(Input({4}), {Dense(2, {.name = "a"}), Dense(2, {.name = "a"})})),
      HasSubstr("Two layers of the model have the name 'a'"));
  const Symbol a = Input({3}, DType::kFloat, "a"), b = Input({3}, DType::kFloat, "b");
  EXPECT_THAT(ErrorOf(Model::Make({a}, {Dense(1)(b)})), HasSubstr("not among the model's inputs"));
}

TEST(ModelTest, DataThatDoesNotFitIsRefused) {
  const auto model = OneDense();
  EXPECT_THAT(std::string(model->Fit(Line(4)).status().message()), HasSubstr("must be compiled"));
  ASSERT_TRUE(model->Compile({.loss = {"mse"}}).ok());
  Examples wrong = Line(4);
  wrong.x[0] = Tensor::FromSpan<float>({4, 3}, std::vector<float>(12));
  EXPECT_THAT(std::string(model->Fit(wrong).status().message()),
              HasSubstr("Input 'input_layer' has shape [4,3], expected [?,2]"));
  EXPECT_THAT(std::string(model->Compile({.loss = {"mes"}}).message()), HasSubstr("no loss 'mes'"));
  EXPECT_THAT(std::string(model->Compile({.loss = {"mse"}, .metrics = {"acuracy"}}).message()),
              HasSubstr("no metric 'acuracy'"));
}

TEST(ModelTest, CallbacksEndTrainingAndKeepTheBest) {
  const std::string folder = TemporaryFolder();
  const auto model = OneDense();
  ASSERT_TRUE(model->Compile({.optimizer = Sgd(0.2), .loss = {"mse"}}).ok());
  int lines = 0;
  FitOptions options;
  options.epochs = 50;
  options.callbacks = {
      Progress([&](const std::string&) { ++lines; }),
      LearningRateScheduler([](int epoch, double rate) { return epoch == 3 ? 0 : rate; }),
      EarlyStopping({.monitor = {.name = "loss"}, .patience = 2}),
      CSVLogger(folder + "/log.csv"),
      TensorBoard(folder),
      ModelCheckpoint(folder + "/at-{epoch}.weights.h5")};
  const auto history = model->Fit(Line(32), options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_LT(history->epochs.size(), 10u);
  EXPECT_EQ(static_cast<size_t>(lines), history->epochs.size());
  EXPECT_EQ(history->values.at("learning_rate").back(), 0);
  RealFileSystem files;
  const StatusOr<std::string> csv = ReadFile(files, folder + "/log.csv");
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_THAT(*csv, HasSubstr("epoch,loss,learning_rate\n0,"));
  EXPECT_EQ(files.List(folder + "/train")->size(), 1u);
  const auto other = OneDense({.seed = 2});
  ASSERT_TRUE(LoadWeights(*other, folder + "/at-01.weights.h5").ok());
}

TEST(ModelTest, NotANumberEndsTraining) {
  const auto model = OneDense();
  ASSERT_TRUE(model->Compile({.optimizer = Sgd(1e30), .loss = {"mse"}}).ok());
  const auto history =
      model->Fit(Line(64), {.batch_size = 4, .epochs = 20, .callbacks = {TerminateOnNaN()}});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epochs.size(), 1u);
}

TEST(ModelTest, WeightsSurviveCompilingAgain) {
  const auto model = OneDense();
  ASSERT_TRUE(model->Compile({.optimizer = Adam(0.1), .loss = {"mse"}}).ok());
  ASSERT_TRUE(model->Fit(Line(32), {.epochs = 3}).ok());
  const Tensor x = Tensor::FromSpan<float>({1, 2}, {0.5f, 0.25f});
  const float before = (*model->Predict({x}))[0].data<float>()[0];
  ASSERT_TRUE(model->Compile({.optimizer = Sgd(), .loss = {"mae"}}).ok());
  EXPECT_EQ((*model->Predict({x}))[0].data<float>()[0], before);
}

TEST(ModelTest, FilesOfAnotherModelAreRefusedByLayer) {
  const std::string path = TemporaryFolder() + "/w.h5";
  const auto model = OneDense();
  ASSERT_TRUE(SaveWeights(*model, path).ok());
  const auto other = Model::Sequential(Input({3}), {Dense(1, {.name = "line"})});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(
      std::string(LoadWeights(**other, path).message()),
      HasSubstr("Layer 'line' (Dense): weight 'line/kernel' has shape [3,1], the file's [2,1]"));
  const auto larger =
      Model::Sequential(Input({2}), {Dense(1, {.name = "line"}), Dense(2, {.name = "more"})});
  ASSERT_TRUE(larger.ok()) << larger.status();
  EXPECT_THAT(std::string(LoadWeights(**larger, path).message()),
              HasSubstr("2 layers with weights, the file 1"));
  EXPECT_TRUE(LoadWeights(**larger, path, {.by_name = true}).ok());
  EXPECT_EQ((*(*larger)->GetWeights())[0].value.data<float>()[0],
            (*model->GetWeights())[0].value.data<float>()[0]);
}

TEST(ModelTest, SpectralNormalizationKeepsKernelsAtOneOnParameterServers) {
  train::testing::LocalCluster cluster(1, 2);
  const auto model = Model::Sequential(
      Input({2}, DType::kInt32),
      {SpectralNormalization(Embedding(9, 1)), Flatten(), SpectralNormalization(Dense(1))},
      {.seed = 3,
       .target = cluster.target(0),
       .device = "/job:worker/task:0",
       .num_ps = 2,
       .split_from = 1});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE((*model)->Compile({.optimizer = Sgd(0.0), .loss = {"mse"}}).ok());
  const Tensor x = Tensor::FromSpan<int32_t>({2, 2}, {1, 2, 3, 4});
  const auto learn = (*model)->TrainOnBatch({{x}, {Tensor::FromSpan<float>({2, 1}, {0, 1})}});
  ASSERT_TRUE(learn.ok()) << learn.status();
  const auto weights = (*model)->GetWeights();
  ASSERT_TRUE(weights.ok()) << weights.status();
  int normalized = 0;
  for (const NamedWeight& weight : *weights) {  // of one column: the length is the singular value
    if (!absl::EndsWith(weight.name, "kernel") && !absl::EndsWith(weight.name, "embeddings"))
      continue;
    double squares = 0;
    for (const float value : weight.value.span<float>()) squares += value * value;
    EXPECT_NEAR(squares, 1, 1e-5) << weight.name;
    ++normalized;
  }
  EXPECT_EQ(normalized, 2);
  EXPECT_THAT(ErrorOf(Model::Sequential(Input({3, 2}), {SpectralNormalization(GRU(2))})),
              HasSubstr("(SpectralNormalization): the GRU in it has no kernel"));
}

TEST(ModelTest, UnknownLayersAreAllNamed) {
  const auto json = Json::Parse(
      R"({"class_name":"Sequential","config":{"layers":[{"class_name":"InputLayer","config":
      {"batch_shape":[null,3]}},{"class_name":"Riddle","config":{}},{"class_name":"TimeDistributed",
      "config":{"layer":{"class_name":"Mystery","config":{}}}},{"class_name":"Sequential","config":
      {"layers":[{"class_name":"Puzzle","config":{}}]}}]}})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(std::string(Network::FromJson(*json).status().message()),
              HasSubstr("does not have: Mystery, Puzzle, Riddle"));
}

TEST(ModelTest, StatefulLayersGoOnUntilTheyAreReset) {
  const auto without = Model::Sequential(Input({3, 2}), {GRU(2, {.stateful = true, .name = "g"})});
  EXPECT_THAT(ErrorOf(without), HasSubstr("Layer 'g' (GRU): a stateful layer needs a batch"));
  const auto model =
      Model::Sequential(Input({3, 2}, DType::kFloat, "", 2),
                        {RNN({LSTM(3), GRU(2)}, {.return_sequences = true, .stateful = true}),
                         GRU(2, {.stateful = true})},
                        {.seed = 3});
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor x = Tensor::FromSpan<float>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1});
  const auto first = [&] { return (*(*model)->Predict({x}))[0].data<float>()[0]; };
  const float begun = first(), gone_on = first();
  EXPECT_NE(begun, gone_on);
  ASSERT_TRUE((*model)->ResetStates().ok());
  EXPECT_EQ(first(), begun);
  EXPECT_EQ((*model)->weights().size(), 9u);  // the states are none
  const auto three = (*model)->Predict({Tensor::FromSpan<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_THAT(std::string(three.status().message()), HasSubstr("expected [2,3,2]"));
}

TEST(ModelTest, ImagesChangeWhileTrainingAlone) {
  const auto model = Model::Sequential(
      Input({4, 4, 1}),
      {RandomFlip(), RandomContrast(0.5), RandomZoom(0.2), RandomTranslation(0.1, 0.1), Flatten(),
       Dense(1, {.kernel_initializer = "ones"})},
      {.seed = 3});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> values(32);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor x = Tensor::FromSpan<float>({2, 4, 4, 1}, values);
  const auto predicted = (*model)->Predict({x});
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_FLOAT_EQ((*predicted)[0].data<float>()[0], 120);
  const Status compiled = (*model)->Compile({.optimizer = Sgd(1e-9), .loss = {"mse"}});
  ASSERT_TRUE(compiled.ok()) << compiled;
  const Examples examples{{x}, {Tensor::FromSpan<float>({2, 1}, {0, 0})}};
  const auto one = (*model)->TrainOnBatch(examples), other = (*model)->TrainOnBatch(examples);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_NE(LogOf(*one, "loss"), LogOf(*other, "loss"));
}

TEST(ModelTest, EquationsThatDoNotFitAreRefused) {
  const auto message = [](const char* equation, const EinsumDenseOptions& options) {
    return ErrorOf(Model::Sequential(Input({3}), {EinsumDense(equation, 4, options)}));
  };
  EXPECT_THAT(message("ab,bc", {}), HasSubstr("expected one like 'ab,bc->ac'"));
  EXPECT_THAT(message("abc,cd->abd", {}), HasSubstr("does not fit an input of shape [?,3]"));
  EXPECT_THAT(message("ab,bcd->acd", {}), HasSubstr("output_shape has 1 sizes"));
  EXPECT_THAT(message("ab,bc->ac", {.bias_axes = "z"}), HasSubstr("has no axis 'z'"));
}

TEST(ModelTest, FitRunsOnAClusterUnchanged) {
  train::testing::LocalCluster cluster(1, 2);
  const auto model = Model::Sequential(
      Input({6}, DType::kInt32),
      {Embedding(12, 4, {.mask_zero = true}), GRU(4), Dense(1, {.activation = "sigmoid"})},
      {.seed = 4, .target = cluster.target(0), .device = "/job:worker/task:0", .num_ps = 2});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<int32_t> words;
  std::vector<float> holds;
  for (int i = 0; i < 64; ++i) {
    bool has = false;
    for (int at = 0; at < 6; ++at) {
      words.push_back(at > 3 ? 0 : 1 + (i * 7 + at * i) % 11);
      has = has || words.back() == 5;
    }
    holds.push_back(has ? 1.0f : 0.0f);
  }
  const Examples examples{{Tensor::FromSpan<int32_t>({64, 6}, words)},
                          {Tensor::FromSpan<float>({64, 1}, holds)}};
  ASSERT_TRUE((*model)->Compile({.optimizer = Adam(0.05), .loss = {"binary_crossentropy"}}).ok());
  const auto history = (*model)->Fit(examples, {.batch_size = 16, .epochs = 4});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_LT(history->values.at("loss").back(), history->values.at("loss").front());
}

TEST(ModelTest, LargeEmbeddingsAreSpreadByRowsAndOneTableInFiles) {
  train::testing::LocalCluster cluster(1, 2);
  const auto make = [&](const ModelOptions& options) {
    return Model::Sequential(Input({3}, DType::kInt32),
                             {Embedding(11, 4), Flatten(), Dense(1, {.activation = "sigmoid"})},
                             options);
  };
  const auto spread = make({.seed = 4,
                            .target = cluster.target(0),
                            .device = "/job:worker/task:0",
                            .num_ps = 2,
                            .split_from = 1});
  ASSERT_TRUE(spread.ok()) << spread.status();
  ASSERT_TRUE((*spread)->Compile({.optimizer = Adam(0.05), .loss = {"binary_crossentropy"}}).ok());
  std::vector<std::string> devices;
  for (const Weight& weight : (*spread)->weights()) {
    if (weight.name == "embedding/embeddings") devices.push_back(weight.variable.device);
  }
  EXPECT_THAT(devices, ::testing::UnorderedElementsAre("/job:ps/task:0", "/job:ps/task:1"));
  std::vector<int32_t> words;
  std::vector<float> holds;
  for (int i = 0; i < 60; ++i) {
    words.push_back(i * 7 % 11);
    if (i % 3 == 2) holds.push_back(words[i] > 5 ? 1.0f : 0.0f);
  }
  const Tensor x = Tensor::FromSpan<int32_t>({20, 3}, words);
  const auto history = (*spread)->Fit({{x}, {Tensor::FromSpan<float>({20, 1}, holds)}},
                                      {.batch_size = 10, .epochs = 20});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_LT(history->values.at("loss").back(), 0.8 * history->values.at("loss").front());

  // One table of all rows, each drawn for itself; a model that is not spread opens it.
  const auto weights = (*spread)->GetWeights();
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_EQ(weights->size(), 3u);
  ASSERT_EQ((*weights)[0].value.shape(), (Shape{11, 4}));
  const float* rows = (*weights)[0].value.data<float>();
  EXPECT_FALSE(std::equal(rows, rows + 4, rows + 6 * 4));
  const std::string path = ::testing::TempDir() + "/spread.weights.h5";
  ASSERT_TRUE(SaveWeights(**spread, path).ok());
  const auto whole = make({.seed = 5});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const Status loaded = LoadWeights(**whole, path);
  ASSERT_TRUE(loaded.ok()) << loaded;
  const auto expected = (*spread)->Predict({x}), predicted = (*whole)->Predict({x});
  ASSERT_TRUE(expected.ok() && predicted.ok());
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_NEAR((*predicted)[0].data<float>()[i], (*expected)[0].data<float>()[i], 1e-6);

  // And the other way round.
  const auto before = (*whole)->GetWeights();
  ASSERT_TRUE(before.ok()) << before.status();
  for (const NamedWeight& weight : *before) {
    std::vector<float> values(weight.value.data<float>(),
                              weight.value.data<float>() + weight.value.num_elements());
    for (float& value : values) value *= 2;
    const Tensor twice = Tensor::FromSpan<float>(weight.value.shape(), values);
    ASSERT_TRUE((*whole)->SetWeights({{weight.name, twice}}).ok());
    ASSERT_TRUE((*spread)->SetWeights({{weight.name, twice}}).ok());
  }
  const auto doubled = (*spread)->Predict({x}), same = (*whole)->Predict({x});
  ASSERT_TRUE(doubled.ok() && same.ok());
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_NEAR((*doubled)[0].data<float>()[i], (*same)[0].data<float>()[i], 1e-6);
}

}  // namespace
}  // namespace weft::estimator
