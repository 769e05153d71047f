// SPDX-License-Identifier: Apache-2.0
#include "weft/train/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A program with the variables a (float [2]) and b (int32), and a session on a disk in memory.
class SaverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    a_ = program_.AddVariable("a", DType::kFloat, Shape{2}, Constant(1));
    b_ = program_.AddVariable("b", DType::kInt32, Shape(), Constant(2));
    GraphBuilder& builder = program_.builder();
    grow_ = builder.AddNode("AssignAddVariableOp",
                            {a_.handle, builder.Constant(Tensor::Vector<float>({1, 10}))});
    init_ = program_.InitializeVariables();
  }
  void Start(int max_to_keep) {
    Saver::Options options;
    options.max_to_keep = max_to_keep;
    options.files = &files_;
    auto saver = Saver::Create(program_, options);
    ASSERT_TRUE(saver.ok()) << saver.status();
    saver_ = *std::move(saver);
    session_ = NewSession();
    ASSERT_TRUE(session_->Run({}, {}, {init_->name()}, nullptr).ok());
  }
  // With variables of its own, as after a restart.
  std::unique_ptr<session::Session> NewSession() {
    session::DirectOptions options{
        .catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1};
    options.files = &files_;
    auto session = session::NewDirectSession(options);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE((*session)->Extend(ExportGraph(program_.graph())).ok());
    return *std::move(session);
  }
  std::vector<float> ValuesOfA(session::Session& session) const {
    std::vector<Tensor> values;
    const Status status = session.Run({}, {a_.value.node->name()}, {}, &values);
    if (!status.ok()) return {};
    return {values[0].span<float>().begin(), values[0].span<float>().end()};
  }

  MemoryFileSystem disk_;
  FaultyFileSystem files_{&disk_};
  Program program_;
  Variable a_, b_;
  Node* grow_ = nullptr;
  Node* init_ = nullptr;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<session::Session> session_;
};

TEST_F(SaverTest, RestoresWhatItSavedAndKeepsTheNewest) {
  Start(2);
  EXPECT_EQ(saver_->Latest("/model").status().code(), absl::StatusCode::kNotFound);
  for (const int step : {1, 2, 3}) {
    ASSERT_TRUE(session_->Run({}, {}, {grow_->name()}, nullptr).ok());
    const auto path = saver_->Save(*session_, "/model", step);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, absl::StrCat("/model/model.ckpt-", step));
    EXPECT_EQ(*saver_->Latest("/model"), *path);
  }
  const auto names = disk_.List("/model");
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, Contains("model.ckpt-2.index"));
  EXPECT_THAT(*names, Not(Contains(HasSubstr("model.ckpt-1"))));

  auto other = NewSession();
  ASSERT_TRUE(saver_->Restore(*other, "/model/model.ckpt-2").ok());
  EXPECT_THAT(ValuesOfA(*other), ElementsAre(3, 21));
}

TEST_F(SaverTest, AFullDiskLosesNothing) {
  Start(5);
  ASSERT_TRUE(saver_->Save(*session_, "/model", 1).ok());
  ASSERT_TRUE(session_->Run({}, {}, {grow_->name()}, nullptr).ok());
  int failures = 0;
  for (int64_t bytes = 0;; bytes += 7) {
    files_.LimitBytes(bytes);
    const auto path = saver_->Save(*session_, "/model", 2);
    files_.LimitBytes(INT64_MAX);
    const auto latest = saver_->Latest("/model");
    ASSERT_TRUE(latest.ok()) << latest.status();
    auto other = NewSession();
    ASSERT_TRUE(saver_->Restore(*other, *latest).ok()) << bytes;
    if (path.ok()) {
      EXPECT_THAT(ValuesOfA(*other), ElementsAre(2, 11));
      break;
    }
    ++failures;
    EXPECT_THAT(std::string(path.status().message()), HasSubstr("/model"));
    ASSERT_LT(bytes, 1 << 20);
  }
  EXPECT_GT(failures, 3);
}

TEST_F(SaverTest, AnyWriteMayFailAndLosesNothing) {
  Start(1);
  ASSERT_TRUE(saver_->Save(*session_, "/model", 1).ok());
  for (int64_t nth = 1;; ++nth) {
    files_.FailCall(nth, Unavailable("the disk is away"), true);
    const auto path = saver_->Save(*session_, "/model", 1 + nth);
    files_.FailCall(INT64_MAX / 2, absl::OkStatus());
    auto other = NewSession();
    const auto latest = saver_->Latest("/model");
    ASSERT_TRUE(latest.ok()) << nth << latest.status();
    ASSERT_TRUE(saver_->Restore(*other, *latest).ok()) << nth;
    if (path.ok()) break;
    ASSERT_LT(nth, 1000);
  }
}

TEST_F(SaverTest, TornAndMissingCheckpointsSayWhatIsWrong) {
  Start(5);
  ASSERT_TRUE(saver_->Save(*session_, "/model", 1).ok());
  const Status missing = saver_->Restore(*session_, "/model/model.ckpt-9");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/model/model.ckpt-9"));
  const std::string index = "/model/model.ckpt-1.index";
  const auto bytes = ReadFile(disk_, index, 1 << 20);
  ASSERT_TRUE(bytes.ok());
  for (const size_t kept : {size_t{0}, size_t{20}, bytes->size() - 1}) {
    auto file = disk_.OpenWrite(index, WriteMode::kTruncate);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(bytes->substr(0, kept)).ok() && (*file)->Close().ok());
    const Status torn = saver_->Restore(*session_, "/model/model.ckpt-1");
    EXPECT_EQ(torn.code(), absl::StatusCode::kDataLoss) << kept << torn;
    EXPECT_THAT(std::string(torn.message()), HasSubstr("model.ckpt-1"));
  }
  // What is restored in vain leaves the variables alone.
  EXPECT_THAT(ValuesOfA(*session_), ElementsAre(1, 1));
}

// The checkpoints of steps 1, 2 and 3, with a = [2, 11], [3, 21] and [4, 31].
TEST_F(SaverTest, ADamagedNewestGivesWayToTheOneBefore) {
  Start(5);
  for (const int step : {1, 2, 3}) {
    ASSERT_TRUE(session_->Run({}, {}, {grow_->name()}, nullptr).ok());
    ASSERT_TRUE(saver_->Save(*session_, "/model", step).ok());
  }
  const auto cut = [&](const std::string& name, size_t kept) {
    const auto bytes = ReadFile(disk_, name, 1 << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    auto file = disk_.OpenWrite(name, WriteMode::kTruncate);
    ASSERT_TRUE(file.ok() && (*file)->Append(bytes->substr(0, kept)).ok());
  };
  cut("/model/model.ckpt-3.index", 10);
  auto other = NewSession();
  auto restored = saver_->RestoreNewest(*other, "/model");
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, "/model/model.ckpt-2");
  EXPECT_THAT(ValuesOfA(*other), ElementsAre(3, 21));
  // Data that is gone, and an index that is: further back.
  ASSERT_TRUE(disk_.Delete("/model/model.ckpt-2.data-00000-of-00001").ok());
  EXPECT_EQ(*saver_->RestoreNewest(*other, "/model"), "/model/model.ckpt-1");
  cut("/model/model.ckpt-1.data-00000-of-00001", 3);
  const Status lost = saver_->RestoreNewest(*other, "/model").status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss) << "training must not start anew";
  EXPECT_THAT(std::string(lost.message()), HasSubstr("model.ckpt-3"));
}

TEST_F(SaverTest, AnEmptyOrTornListForgetsNothing) {
  Start(5);
  for (const int step : {9, 10}) {
    ASSERT_TRUE(session_->Run({}, {}, {grow_->name()}, nullptr).ok());
    ASSERT_TRUE(saver_->Save(*session_, "/model", step).ok());
  }
  for (const char* text : {"", "model_checkpoint_path: \"model.ck"}) {
    auto file = disk_.OpenWrite("/model/checkpoint", WriteMode::kTruncate);
    ASSERT_TRUE(file.ok() && (*file)->Append(text).ok());
    auto other = NewSession();
    auto restored = saver_->RestoreNewest(*other, "/model");
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ(*restored, "/model/model.ckpt-10");
  }
  ASSERT_TRUE(saver_->Save(*session_, "/model", 11).ok());
  ASSERT_TRUE(disk_.Delete("/model/model.ckpt-11.index").ok());
  auto other = NewSession();
  EXPECT_EQ(*saver_->RestoreNewest(*other, "/model"), "/model/model.ckpt-10");
}

// On a disk that is full, what max_to_keep pushes out makes room; the newest always stays.
TEST_F(SaverTest, AFullDiskIsFreedOfWhatIsNotKept) {
  Start(0);
  for (const int step : {1, 2, 3, 4}) ASSERT_TRUE(saver_->Save(*session_, "/model", step).ok());
  Saver::Options options;
  options.max_to_keep = 2;
  options.files = &files_;
  auto keeper = Saver::Create(program_, options);
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  session_ = NewSession();
  ASSERT_TRUE(session_->Run({}, {}, {init_->name()}, nullptr).ok());
  files_.LimitBytes(0);
  const Status full = (*keeper)->Save(*session_, "/model", 5).status();
  files_.LimitBytes(INT64_MAX);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  const auto names = disk_.List("/model");
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, Not(Contains(HasSubstr("model.ckpt-1."))));
  EXPECT_THAT(*names, Not(Contains(HasSubstr("model.ckpt-3."))));
  EXPECT_THAT(*names, Contains("model.ckpt-4.index"));
  EXPECT_EQ(*(*keeper)->RestoreNewest(*session_, "/model"), "/model/model.ckpt-4");
  ASSERT_TRUE((*keeper)->Save(*session_, "/model", 5).ok());
  EXPECT_EQ(*(*keeper)->Latest("/model"), "/model/model.ckpt-5");
}

TEST_F(SaverTest, RefusesACheckpointOfAnotherShape) {
  Start(5);
  ASSERT_TRUE(saver_->Save(*session_, "/model", 1).ok());
  Program wider;
  wider.AddVariable("a", DType::kFloat, Shape{3}, Constant(1));
  Saver::Options options;
  options.files = &files_;
  const auto saver = Saver::Create(wider, options);
  ASSERT_TRUE(saver.ok()) << saver.status();
  auto session = session::NewDirectSession(
      {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .files = &files_});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Extend(ExportGraph(wider.graph())).ok());
  const Status status = (*saver)->Restore(**session, "/model/model.ckpt-1");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("[2]"), HasSubstr("[3]"), HasSubstr("save/a")));
}

TEST_F(SaverTest, NamesTheVariableThatACheckpointLacks) {
  Start(5);
  ASSERT_TRUE(saver_->Save(*session_, "/model", 1).ok());
  Program other;
  other.AddVariable("a", DType::kFloat, Shape{2}, Zeros());
  other.AddVariable("missing", DType::kFloat, Shape{2}, Zeros());
  Saver::Options options;
  options.files = &files_;
  auto saver = Saver::Create(other, options);
  ASSERT_TRUE(saver.ok());
  session::DirectOptions direct{
      .catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1};
  direct.files = &files_;
  auto session = session::NewDirectSession(direct);
  ASSERT_TRUE(session.ok() && (*session)->Extend(ExportGraph(other.graph())).ok());
  const Status status = (*saver)->Restore(**session, "/model/model.ckpt-1");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing"));
}

TEST(SaverCreateTest, NeedsAVariable) {
  Program program;
  EXPECT_EQ(Saver::Create(program).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::train
