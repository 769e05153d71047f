// SPDX-License-Identifier: Apache-2.0
#include "weft/train/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/optimizer.h"

namespace weft::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// y = w x + b, with w in two parts, and a session on a disk in memory.
class SavedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphBuilder& b = program_.builder();
    const auto parts = program_.AddPartitionedVariable("w", DType::kFloat, {3, 1}, Constant(2), 2);
    const Variable bias = program_.AddVariable("b", DType::kFloat, Shape{1}, Constant(1));
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape{-1, 3}}}, "x");
    y_ = b.Op("AddV2", {b.Op("MatMul", {x_, JoinParts(b, parts)}), bias.value}, {}, "y");
    const Endpoint path = b.Constant(Tensor::Scalar<std::string>("/words"), "words");
    words_ = b.Op("ReadFile", {path});
    saver_ = *Saver::Create(program_, {.files = &disk_});
    init_ = program_.InitializeVariables();
    options_.signatures["serving_default"] = MakeSignature(b, {{"x", x_}}, {{"y", y_}});
    options_.assets = {{path, "/words"}};
    options_.files = &disk_;
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    ASSERT_TRUE(WriteFile(disk_, "/words", "rain snow").ok());
  }
  std::unique_ptr<session::Session> Start(Program& program) {
    session::DirectOptions options{
        .catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1};
    options.files = &disk_;
    auto session = session::NewDirectSession(options);
    EXPECT_TRUE(session.ok()) << session.status();
    const Status extended = (*session)->Extend(ExportGraph(program.graph()));
    EXPECT_TRUE(extended.ok()) << extended;
    return *std::move(session);
  }
  Status Export(const std::string& folder) {
    const std::unique_ptr<session::Session> session = Start(program_);
    WEFT_RETURN_IF_ERROR(session->Run({}, {}, {init_->name()}, nullptr));
    return ExportSavedModel(program_, *saver_, *session, folder, options_);
  }
  static Tensor Row(float a, float b, float c) {
    return Tensor::FromSpan<float>(Shape{1, 3}, std::vector<float>{a, b, c});
  }

  MemoryFileSystem disk_;
  Program program_;
  Endpoint x_, y_, words_;
  std::unique_ptr<Saver> saver_;
  Node* init_ = nullptr;
  ExportOptions options_;
};

TEST_F(SavedModelTest, GivesWhatWasExported) {
  ASSERT_TRUE(Export("/model").ok());
  EXPECT_EQ(Export("/model").code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(disk_.Delete("/words").ok());
  Program other;
  const auto model = LoadSavedModel(other, "/model", {.files = &disk_});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(other.variables().size(), 3u);
  const std::unique_ptr<session::Session> session = Start(other);
  ASSERT_TRUE(model->Restore(*session).ok());
  const auto results = model->Call(*session, "serving_default", {{"x", Row(1, 2, 3)}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("y").scalar<float>(), 13);
}

TEST_F(SavedModelTest, FilesGoAlong) {
  options_.after_load = words_.node;
  ASSERT_TRUE(Export("/model").ok());
  ASSERT_TRUE(disk_.Delete("/words").ok());
  Program other;
  const auto model = LoadSavedModel(other, "/model", {.files = &disk_});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->assets.size(), 1u);
  EXPECT_EQ(model->assets[0].second.scalar<std::string>(), "/model/assets/words");
  // What runs after loading reads the copy.
  EXPECT_TRUE(model->Restore(*Start(other)).ok());
}

TEST_F(SavedModelTest, IsTrainedFurther) {
  ASSERT_TRUE(Export("/model").ok());
  Program other;
  const auto model = LoadSavedModel(other, "/model", {.files = &disk_});
  ASSERT_TRUE(model.ok()) << model.status();
  GraphBuilder& b = other.builder();
  const Endpoint loss = b.Op(
      "Sum", {*other.graph().FindEndpoint("y:0"), b.Constant(Tensor::Vector<int32_t>({0, 1}))});
  const auto step = GradientDescent(0.5)->Minimize(other, loss);
  ASSERT_TRUE(step.ok()) << step.status();
  Node* init = other.InitializeVariables();
  auto saver = Saver::Create(other, {.files = &disk_});
  ASSERT_TRUE(saver.ok()) << saver.status();
  const std::unique_ptr<session::Session> session = Start(other);
  ASSERT_TRUE(session->Run({}, {}, {init->name()}, nullptr).ok());
  ASSERT_TRUE(model->Restore(*session).ok());
  ASSERT_TRUE(session->Run({{"x:0", Row(1, 0, 2)}}, {}, {(*step)->name()}, nullptr).ok());
  // w = 2 - 0.5 x, b = 1 - 0.5.
  std::vector<Tensor> values;
  ASSERT_TRUE(session->Run({{"x:0", Row(1, 1, 1)}}, {"y:0"}, {}, &values).ok());
  EXPECT_FLOAT_EQ(values[0].scalar<float>(), 1.5f + 2 + 1 + 0.5f);
  // And it can be exported again, as a model of its own.
  ExportOptions again{.signatures = model->signatures, .files = &disk_};
  ASSERT_TRUE(ExportSavedModel(other, **saver, *session, "/again", again).ok());
}

TEST_F(SavedModelTest, BytesSayTheSameAgain) {
  MetaGraph meta = MetaGraphOf(program_, saver_.get());
  meta.tags = {"serve", "mine"};
  meta.signatures = options_.signatures;
  meta.collections["train_op"] = {"step"};
  const auto bytes = SerializeMetaGraph(meta);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto back = ParseMetaGraph(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->tags, UnorderedElementsAre("serve", "mine"));
  EXPECT_THAT(back->collections.at("train_op"), ElementsAre("step"));
  EXPECT_EQ(back->signatures.at("serving_default").inputs.at("x").shape.ToString(), "[?,3]");
  EXPECT_EQ(back->saver.path, "save/prefix:0");
  EXPECT_EQ(back->variables.size(), 3u);
  EXPECT_EQ(*SerializeMetaGraph(*back), *bytes);
  const auto saved = SerializeSavedModel({meta});
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(*SerializeSavedModel(*ParseSavedModel(*saved)), *saved);
}

TEST_F(SavedModelTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(std::string(ParseMetaGraph("\xff\xff").status().message()),
              HasSubstr("not a MetaGraphDef"));
  ASSERT_TRUE(Export("/model").ok());
  Program other;
  const LoadOptions wrong{.tags = {"gpu"}, .files = &disk_};
  EXPECT_THAT(std::string(LoadSavedModel(other, "/model", wrong).status().message()),
              HasSubstr("[gpu]: there are [serve]"));
  EXPECT_EQ(LoadSavedModel(other, "/none", {.files = &disk_}).status().code(),
            absl::StatusCode::kNotFound);
  const auto model = LoadSavedModel(other, "/model", {.files = &disk_});
  ASSERT_TRUE(model.ok());
  const std::unique_ptr<session::Session> session = Start(other);
  EXPECT_THAT(std::string(model->Call(*session, "other", {}).status().message()),
              HasSubstr("there are serving_default"));
  EXPECT_THAT(std::string(model->Call(*session, "serving_default", {}).status().message()),
              HasSubstr("needs the input 'x'"));
  options_.signatures["serving_default"].outputs["y"].name = "z:0";
  EXPECT_THAT(std::string(Export("/bad").message()), HasSubstr("'y' of signature"));
}

}  // namespace
}  // namespace weft::train
