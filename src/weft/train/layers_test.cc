// SPDX-License-Identifier: Apache-2.0
#include "weft/train/layers.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/embedding.h"

namespace weft::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Name(const Endpoint& x) { return absl::StrCat(x.node->name(), ":", x.port); }

// Initializes the program's variables and evaluates x.
StatusOr<Tensor> Evaluate(Program& program, Endpoint x,
                          const std::vector<session::Feed>& feeds = {}) {
  Node* init = program.InitializeVariables();
  WEFT_RETURN_IF_ERROR(program.status());
  session::DirectOptions options;
  options.catalogue = &StandardCatalogue();
  options.devices = &StandardDevices();
  options.num_threads = 1;
  WEFT_ASSIGN_OR_RETURN(auto session, session::NewDirectSession(options));
  WEFT_RETURN_IF_ERROR(session->Extend(ExportGraph(program.graph())));
  WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init->name()}, nullptr));
  std::vector<Tensor> results;
  WEFT_RETURN_IF_ERROR(session->Run(feeds, {Name(x)}, {}, &results));
  return results[0];
}

Endpoint Images(Program& program, const PartialShape& shape) {
  return program.builder().Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}},
                              "images");
}

TEST(LayersTest, StackFromImagesToClasses) {
  Program program;
  GraphBuilder& b = program.builder();
  Endpoint x = Images(program, {-1, 6, 6, 2});
  x = Conv2D(program, "conv", x, 4, 3, {.stride = 2, .activation = Relu, .seed = 1});
  x = AveragePool(b, MaxPool(b, x, 1), 3);
  x = Dense(program, "out", Flatten(b, x), 5, {.use_bias = false, .seed = 2});
  StatusOr<Tensor> zeros = Tensor::Zeros(DType::kFloat, Shape{3, 6, 6, 2});
  ASSERT_TRUE(zeros.ok());
  const StatusOr<Tensor> out = Evaluate(program, x, {{"images:0", *zeros}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape(), (Shape{3, 5}));
  std::vector<std::string> names;
  for (const Variable& variable : program.variables()) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("conv/kernel", "conv/bias", "out/kernel"));
}

TEST(LayersTest, NameWhatIsNotKnown) {
  Program program;
  Dense(program, "hidden", Images(program, {-1, -1}), 5);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("Layer 'hidden'"));
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("[?,?]"));
  Program other;
  Flatten(other.builder(), Images(other, {2, -1, 3}));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("Flatten needs sizes"));
}

TEST(DropoutTest, KeepsTheMeanAndServesUnchanged) {
  Program program;
  GraphBuilder& b = program.builder();
  const Endpoint x = b.Op("OnesLike", {Images(program, {4000})});
  const Endpoint training =
      b.Op("Placeholder", {}, {{"dtype", DType::kBool}, {"shape", Shape()}}, "training");
  const Endpoint out = Dropout(b, x, 0.25, training, 5);
  StatusOr<Tensor> zeros = Tensor::Zeros(DType::kFloat, Shape{4000});
  ASSERT_TRUE(zeros.ok());
  const StatusOr<Tensor> trained =
      Evaluate(program, out, {{"images:0", *zeros}, {"training:0", Tensor::Scalar<bool>(true)}});
  ASSERT_TRUE(trained.ok()) << trained.status();
  int dropped = 0;
  for (const float v : trained->span<float>()) {
    if (v == 0) {
      ++dropped;
    } else {
      ASSERT_FLOAT_EQ(v, 1 / 0.75f);
    }
  }
  EXPECT_NEAR(dropped, 1000, 150);
  const StatusOr<Tensor> served =
      Evaluate(program, out, {{"images:0", *zeros}, {"training:0", Tensor::Scalar<bool>(false)}});
  ASSERT_TRUE(served.ok()) << served.status();
  for (const float v : served->span<float>()) ASSERT_EQ(v, 1);
  EXPECT_FALSE(Dropout(b, x, 1, training));
  EXPECT_THAT(std::string(b.status().message()), HasSubstr("rate"));
}

// A table whose row i holds (10 i, 10 i + 1).
std::vector<Variable> Table(Program& program, int rows, int parts, PartitionStrategy strategy) {
  int part = 0;
  const auto fill = [&](GraphBuilder& b, DType, const Shape& shape) {
    std::vector<float> values;
    const int first = strategy == PartitionStrategy::kMod
                          ? part
                          : part * (rows / parts) + std::min(part, rows % parts);
    const int step = strategy == PartitionStrategy::kMod ? parts : 1;
    for (int i = 0; i < shape.dim(0); ++i) {
      const auto row = static_cast<float>(first + i * step);
      values.insert(values.end(), {10 * row, 10 * row + 1});
    }
    ++part;
    return b.Constant(Tensor::FromSpan<float>(shape, values));
  };
  if (strategy == PartitionStrategy::kMod)
    return AddEmbedding(program, "table", rows, 2, parts, fill);
  return program.AddPartitionedVariable("table", DType::kFloat, {rows, 2}, fill, parts);
}

TEST(EmbeddingTest, FindsRowsByEitherStrategy) {
  for (const PartitionStrategy strategy : {PartitionStrategy::kMod, PartitionStrategy::kDiv}) {
    for (const int parts : {1, 2, 3}) {
      Program program;
      GraphBuilder& b = program.builder();
      const auto table = Table(program, 7, parts, strategy);
      const Endpoint ids = b.Constant(Tensor::FromSpan<int64_t>({2, 2}, {6, 0, 3, 6}));
      const StatusOr<Tensor> rows = Evaluate(program, EmbeddingLookup(b, table, ids, strategy));
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_EQ(rows->shape(), (Shape{2, 2, 2}));
      EXPECT_THAT(rows->span<float>(), ElementsAre(60, 61, 0, 1, 30, 31, 60, 61)) << parts;
    }
  }
}

TEST(EmbeddingTest, LooksUpNothingAtAll) {
  Program program;
  const auto table = Table(program, 5, 2, PartitionStrategy::kMod);
  const Endpoint none = program.builder().Constant(Tensor::FromSpan<int32_t>(Shape{0}, {}));
  const StatusOr<Tensor> rows =
      Evaluate(program, EmbeddingLookup(program.builder(), table, none, PartitionStrategy::kMod));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->shape(), (Shape{0, 2}));
}

TEST(EmbeddingTest, CombinesTheRowsOfAnExample) {
  const std::vector<std::pair<Combiner, std::vector<float>>> cases = {
      {Combiner::kSum, {40, 42, 0, 0, 20, 21}},
      {Combiner::kMean, {20, 21, 0, 0, 20, 21}},
      {Combiner::kSqrtN, {40 / std::sqrt(2.0f), 42 / std::sqrt(2.0f), 0, 0, 20, 21}}};
  for (const auto& [combiner, expected] : cases) {
    Program program;
    GraphBuilder& b = program.builder();
    const auto table = Table(program, 5, 2, PartitionStrategy::kMod);
    const Endpoint ids = b.Constant(Tensor::Vector<int32_t>({1, 3, 2}));
    const Endpoint examples = b.Constant(Tensor::Vector<int32_t>({0, 0, 2}));
    const StatusOr<Tensor> rows =
        Evaluate(program, EmbeddingLookupCombined(b, table, ids, examples, combiner));
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->num_elements(), 6);
    for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(rows->data<float>()[i], expected[i]);
  }
}

TEST(EmbeddingTest, RefusesMorePartsThanRows) {
  Program program;
  EXPECT_TRUE(AddEmbedding(program, "table", 2, 4, 3, Zeros()).empty());
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("Embedding 'table' of 2 rows"));
}

}  // namespace
}  // namespace weft::train
