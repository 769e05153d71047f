// SPDX-License-Identifier: Apache-2.0
#include "weft/train/monitored_session.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "proto/tensorflow/event.pb.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/storage/event_file.h"
#include "weft/storage/tensor_bundle.h"
#include "weft/train/dataset.h"

namespace weft::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Lets the writes of checkpoints in the background wait while it is shut.
class Gate {
 public:
  void Shut() { Set(false); }
  void Open() { Set(true); }
  void Pass() {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_open_));
  }

 private:
  void Set(bool is_open) {
    const absl::MutexLock lock(&mutex_);
    is_open_ = is_open;
  }
  absl::Mutex mutex_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
};

// Passes calls on; steps that run "train" fail when `fail` says so, and what was taken is written
// when the gate is open or the session has been closed.
class FailingSession final : public session::Session {
 public:
  FailingSession(std::unique_ptr<session::Session> inner, std::function<Status()> fail, Gate* gate)
      : inner_(std::move(inner)), fail_(std::move(fail)), gate_(gate) {}
  Status Extend(const GraphDef& graph) override { return inner_->Extend(graph); }
  Status Run(const session::RunOptions& options, const std::vector<session::Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, session::RunMetadata* metadata) override {
    for (const std::string& target : targets) {
      if (target == "train") WEFT_RETURN_IF_ERROR(fail_());
    }
    for (const std::string& fetch : fetches) {
      if (absl::StrContains(fetch, "saved_taken")) gate_->Pass();
    }
    return inner_->Run(options, feeds, fetches, targets, results, metadata);
  }
  StatusOr<std::vector<DeviceAttributes>> ListDevices() override { return inner_->ListDevices(); }
  Status Close() override {
    const Status closed = inner_->Close();
    gate_->Open();
    return closed;
  }

 private:
  const std::unique_ptr<session::Session> inner_;
  const std::function<Status()> fail_;
  Gate* const gate_;
};

// Notes what a session tells its hooks.
class NotingHook final : public Hook {
 public:
  Status AfterCreate(session::Session&, int64_t step) override {
    notes.push_back(absl::StrCat("create ", step));
    return absl::OkStatus();
  }
  Status AfterRun(const StepContext& context) override {
    notes.push_back(absl::StrCat("run ", context.global_step));
    return absl::OkStatus();
  }
  void AfterClose() override { notes.push_back("close"); }
  Status End(session::Session&, int64_t step) override {
    notes.push_back(absl::StrCat("end ", step));
    return absl::OkStatus();
  }
  std::vector<std::string> notes;
};

// Each step adds one to the global step. A new session has lost all variables, as after the loss of
// a parameter server.
class MonitoredSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Variable step = program_.GlobalStep();
    GraphBuilder& b = program_.builder();
    Node* add = b.AddNode("AssignAddVariableOp", {step.handle, b.Scalar<int64_t>(1)});
    train_ = program_.Group({add}, "train");
    Saver::Options saving;
    saving.files = &disk_;
    saving.can_take = true;
    auto saver = Saver::Create(program_, saving);
    ASSERT_TRUE(saver.ok()) << saver.status();
    saver_ = *std::move(saver);
    options_.make_session = [this] { return NewSession(); };
    options_.saver = saver_.get();
    options_.checkpoint_folder = "/model";
    options_.train = train_;
    options_.poll = absl::Milliseconds(1);
    options_.max_wait = absl::Milliseconds(50);
  }
  StatusOr<std::unique_ptr<session::Session>> NewSession() {
    ++sessions_;
    session::DirectOptions direct{
        .catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1};
    direct.files = &disk_;
    WEFT_ASSIGN_OR_RETURN(auto inner, session::NewDirectSession(direct));
    return std::make_unique<FailingSession>(
        std::move(inner), [this] { return ++steps_ == failing_ ? error_ : absl::OkStatus(); },
        &gate_);
  }
  std::unique_ptr<MonitoredSession> Create() {
    auto session = MonitoredSession::Create(program_, options_);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  Status Train(MonitoredSession& session, int steps) {
    for (int i = 0; i < steps; ++i) WEFT_RETURN_IF_ERROR(session.Run({}, {}, {train_}, nullptr));
    return absl::OkStatus();
  }

  MemoryFileSystem files_;
  FaultyFileSystem disk_{&files_};
  Gate gate_;
  Program program_;
  Node* train_ = nullptr;
  std::unique_ptr<Saver> saver_;
  MonitoredOptions options_;
  NotingHook notes_;
  int sessions_ = 0;
  int steps_ = 0;
  int failing_ = 0;  // which train step fails, counted from 1
  Status error_ = Unavailable("the parameter server is gone");
};

TEST_F(MonitoredSessionTest, TellsHooksInOrder) {
  options_.hooks = {&notes_};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  ASSERT_TRUE(Train(*session, 2).ok());
  ASSERT_TRUE(session->End().ok());
  session.reset();
  EXPECT_THAT(notes_.notes, ElementsAre("create 0", "run 1", "run 2", "end 2", "close"));
}

TEST_F(MonitoredSessionTest, ALostPeerCostsTheStepsSinceTheCheckpoint) {
  const auto save = SaveCheckpoints(saver_.get(), "/model", Every::Steps(3));
  options_.hooks = {save.get(), &notes_};
  failing_ = 6;
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  ASSERT_TRUE(Train(*session, 6).ok());
  EXPECT_EQ(sessions_, 2);
  // The sixth step failed, and was run again from the checkpoint of step 3.
  EXPECT_EQ(session->global_step(), 4);
  EXPECT_THAT(notes_.notes, ElementsAre("create 0", "run 1", "run 2", "run 3", "run 4", "run 5",
                                        "close", "create 3", "run 4"));
}

// Says, once a second session is made, that the other workers have trained to the end.
class OthersEndHook final : public Hook {
 public:
  explicit OthersEndHook(const int* sessions) : sessions_(*sessions) {}
  bool Done(int64_t) override { return sessions_ > 1; }

 private:
  const int& sessions_;
};

TEST_F(MonitoredSessionTest, AStepLostAtTheVeryEndIsNotTrainedAgain) {
  const auto save = SaveCheckpoints(saver_.get(), "/model", Every::Steps(3));
  OthersEndHook others(&sessions_);
  options_.hooks = {save.get(), &others};
  failing_ = 4;
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  ASSERT_TRUE(Train(*session, 3).ok());
  std::vector<Tensor> values;
  ASSERT_EQ(session->Run({}, {program_.GlobalStep().value}, {train_}, &values), absl::OkStatus());
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_EQ(steps_, 4);
  EXPECT_EQ(values[0].scalar<int64_t>(), 3);
}

// The global step that a checkpoint holds.
int64_t StepIn(FileSystem& files, const std::string& path) {
  const auto reader = storage::BundleReader::Open(files, path);
  if (!reader.ok()) return -1;
  const StatusOr<Tensor> step = (*reader)->Read("global_step");
  return step.ok() ? step->scalar<int64_t>() : -1;
}

TEST_F(MonitoredSessionTest, TrainsOnWhileACheckpointIsWritten) {
  const auto save = SaveCheckpointsInBackground(saver_.get(), "/model", Every::Steps(2));
  options_.hooks = {save.get()};
  gate_.Shut();
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  // The first, of step 0, is held all the time: no other is begun beside it.
  ASSERT_TRUE(Train(*session, 5).ok());
  EXPECT_TRUE(absl::IsNotFound(saver_->Latest("/model").status()));
  gate_.Open();
  while (!saver_->Latest("/model").ok()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(StepIn(disk_, "/model/model.ckpt-0"), 0);
  // What is due by now is taken after the next step that finds the first one written.
  while (saver_->Latest("/model").value_or("") == "/model/model.ckpt-0") {
    ASSERT_TRUE(Train(*session, 1).ok());
  }
  const std::string second = *saver_->Latest("/model");
  const int64_t step = StepIn(disk_, second);
  EXPECT_GT(step, 5);
  EXPECT_EQ(second, absl::StrCat("/model/model.ckpt-", step));
  ASSERT_EQ(session->End(), absl::OkStatus());
  EXPECT_EQ(*saver_->Latest("/model"), absl::StrCat("/model/model.ckpt-", session->global_step()));
  EXPECT_EQ(StepIn(disk_, *saver_->Latest("/model")), session->global_step());
}

TEST_F(MonitoredSessionTest, AWriteThatASessionTookWithItLeavesTheCheckpointBefore) {
  const auto save = SaveCheckpointsInBackground(saver_.get(), "/model", Every::Steps(2));
  options_.hooks = {save.get()};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  while (!saver_->Latest("/model").ok()) absl::SleepFor(absl::Milliseconds(1));
  gate_.Shut();
  failing_ = 4;
  ASSERT_TRUE(Train(*session, 4).ok());
  EXPECT_EQ(sessions_, 2);
  EXPECT_EQ(session->global_step(), 1);  // from step 0, which was written: that of step 2 was not
  ASSERT_EQ(session->End(), absl::OkStatus());
  EXPECT_EQ(StepIn(disk_, *saver_->Latest("/model")), 1);
}

TEST_F(MonitoredSessionTest, AFullDiskDoesNotStopTrainingThatSavesInTheBackground) {
  const auto save = SaveCheckpointsInBackground(saver_.get(), "/model", Every::Steps(1));
  options_.hooks = {save.get()};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  while (!saver_->Latest("/model").ok()) absl::SleepFor(absl::Milliseconds(1));
  disk_.LimitBytes(0);
  ASSERT_TRUE(Train(*session, 20).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(session->End()));
  EXPECT_EQ(StepIn(disk_, *saver_->Latest("/model")), 0);
}

TEST_F(MonitoredSessionTest, ASaverThatCannotTakeSaysSo) {
  const auto plain = Saver::Create(program_);
  ASSERT_TRUE(plain.ok());
  const auto save = SaveCheckpointsInBackground(plain->get(), "/model", Every::Steps(1));
  options_.hooks = {save.get()};
  const auto session = MonitoredSession::Create(program_, options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(session.status())) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("can_take"));
}

TEST_F(MonitoredSessionTest, SavesAfterSomeTimeAsWellAsAfterSomeSteps) {
  FakeClock clock;
  const auto save =
      SaveCheckpoints(saver_.get(), "/model", {.steps = 4, .time = absl::Seconds(60)}, &clock);
  options_.hooks = {save.get()};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  ASSERT_TRUE(Train(*session, 1).ok());
  EXPECT_EQ(*saver_->Latest("/model"), "/model/model.ckpt-0");
  clock.Advance(absl::Seconds(61));
  ASSERT_TRUE(Train(*session, 1).ok());
  EXPECT_EQ(*saver_->Latest("/model"), "/model/model.ckpt-2");
  ASSERT_TRUE(Train(*session, 3).ok());
  EXPECT_EQ(*saver_->Latest("/model"), "/model/model.ckpt-2");
  ASSERT_TRUE(Train(*session, 1).ok());
  EXPECT_EQ(*saver_->Latest("/model"), "/model/model.ckpt-6");
}

// The values of the one event file in `folder`, with their steps.
std::vector<std::pair<int64_t, float>> CountsIn(const std::string& folder) {
  std::vector<std::pair<int64_t, float>> counts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    RealFileSystem files;
    auto reader = storage::EventFileReader::Open(files, entry.path().string());
    if (!reader.ok()) continue;
    tensorflow::Event event;
    while (true) {
      const StatusOr<bool> more = (*reader)->Next(&event);
      if (!more.ok() || !*more) break;
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "global_step/sec") {
          counts.emplace_back(event.step(), value.simple_value());
        }
      }
    }
  }
  return counts;
}

TEST_F(MonitoredSessionTest, CountsStepsASecond) {
  std::string folder = absl::StrCat(::testing::TempDir(), "/count_stepsXXXXXX");
  ASSERT_TRUE(mkdtemp(folder.data()) != nullptr);
  FakeClock clock;
  const auto count = CountSteps(folder, Every::Steps(2), &clock);
  options_.hooks = {count.get()};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  for (int i = 0; i < 5; ++i) {
    clock.Advance(absl::Milliseconds(250));
    ASSERT_TRUE(Train(*session, 1).ok());
  }
  ASSERT_EQ(session->End(), absl::OkStatus());
  EXPECT_THAT(CountsIn(folder), ElementsAre(Pair(2, 4.0f), Pair(4, 4.0f)));
}

TEST_F(MonitoredSessionTest, ResumesFromTheNewestCheckpoint) {
  const auto save = SaveCheckpoints(saver_.get(), "/model", Every::Steps(100));
  options_.hooks = {save.get()};
  {
    auto session = Create();
    ASSERT_TRUE(session != nullptr);
    ASSERT_TRUE(Train(*session, 5).ok());
    ASSERT_TRUE(session->End().ok());
  }
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  EXPECT_EQ(session->global_step(), 5);
}

// A full disk does not end training, but who ends with one is told.
TEST_F(MonitoredSessionTest, AFullDiskFailsTheLastSaveOnly) {
  const auto save = SaveCheckpoints(saver_.get(), "/model", Every::Steps(2));
  options_.hooks = {save.get()};
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  ASSERT_TRUE(Train(*session, 3).ok());
  disk_.LimitBytes(0);
  ASSERT_TRUE(Train(*session, 3).ok());
  const Status full = session->End();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), ::testing::HasSubstr("model.ckpt-6"));
  disk_.LimitBytes(INT64_MAX);
  EXPECT_EQ(session->End(), absl::OkStatus());
  EXPECT_EQ(*saver_->Latest("/model"), "/model/model.ckpt-6");
}

TEST_F(MonitoredSessionTest, ADamagedCheckpointCostsStepsButNotTheRun) {
  const auto save = SaveCheckpoints(saver_.get(), "/model", Every::Steps(2));
  options_.hooks = {save.get()};
  {
    auto session = Create();
    ASSERT_TRUE(session != nullptr);
    ASSERT_TRUE(Train(*session, 4).ok());
  }
  ASSERT_TRUE(files_.OpenWrite("/model/model.ckpt-4.index", WriteMode::kTruncate).ok());
  ASSERT_TRUE(files_.OpenWrite("/model/checkpoint", WriteMode::kTruncate).ok());
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  EXPECT_EQ(session->global_step(), 2);
}

TEST_F(MonitoredSessionTest, OtherErrorsAreTheProgramsOwn) {
  failing_ = 2;
  error_ = InvalidArgument("a bad batch");
  auto session = Create();
  ASSERT_TRUE(session != nullptr);
  EXPECT_EQ(Train(*session, 2).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sessions_, 1);
  EXPECT_TRUE(Train(*session, 1).ok());
}

TEST_F(MonitoredSessionTest, AWorkerWaitsForItsChiefNotForEver) {
  options_.is_chief = false;
  const auto session = MonitoredSession::Create(program_, options_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("global_step"));
}

TEST_F(MonitoredSessionTest, GivesUpOnACheckpointThatCannotBeRead) {
  ASSERT_TRUE(files_.MakeDirectories("/model").ok());
  for (const auto& [name, text] :
       {std::pair("checkpoint", "model_checkpoint_path: \"model.ckpt-1\"\n"),
        std::pair("model.ckpt-1.index", "no table")}) {
    auto file = files_.OpenWrite(absl::StrCat("/model/", name), WriteMode::kTruncate);
    ASSERT_TRUE(file.ok() && (*file)->Append(text).ok() && (*file)->Close().ok());
  }
  const auto session = MonitoredSession::Create(program_, options_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kDataLoss) << session.status();
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("model.ckpt-1"));
}

TEST(ProgressTest, ReadsWell) {
  EXPECT_EQ(ProgressText({.step = 120,
                          .last_step = 600,
                          .loss = 0.23144f,
                          .examples_per_second = 45210.4,
                          .left = absl::Seconds(3)}),
            "step 120/600  loss 0.2314  45210 examples/s  3s left");
  EXPECT_EQ(ProgressText({.step = 1, .last_step = 600}), "step 1/600  loss 0.0000");
  EXPECT_EQ(ProgressText(
                {.step = 1, .last_step = 2, .examples_per_second = 1, .left = absl::Seconds(3725)}),
            "step 1/2  loss 0.0000  1 examples/s  1h02m left");
  EXPECT_EQ(ProgressText({.step = 2,
                          .last_step = 2,
                          .examples_per_second = 1,
                          .left = absl::Seconds(65),
                          .is_last = true}),
            "step 2/2  loss 0.0000  1 examples/s");
}

TEST_F(MonitoredSessionTest, AScaffoldSaysWhatComesBeforeTheFirstStep) {
  GraphBuilder& b = program_.builder();
  const Endpoint first = b.Op("Placeholder", {}, {{"dtype", DType::kInt64}}, "first");
  options_.scaffold.init =
      b.AddNode("AssignVariableOp", {program_.GlobalStep().handle, first}, {}, "own_init");
  options_.scaffold.init_feeds = {{"first:0", Tensor::Scalar<int64_t>(40)}};
  int calls = 0;
  options_.scaffold.init_function = [&](session::Session& session) {
    ++calls;
    return session.Run({}, {}, {"train"}, nullptr);
  };
  EXPECT_EQ(Create()->global_step(), 41);
  EXPECT_EQ(calls, 1);
}

TEST_F(MonitoredSessionTest, EverybodyWaitsForWhatAScaffoldSaysIsNotReady) {
  options_.scaffold.not_ready =
      program_.builder().Constant(Tensor::Vector<std::string>({"the table"}));
  const auto session = MonitoredSession::Create(program_, options_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("the table"));
}

TEST_F(MonitoredSessionTest, TheEndMayTakeSoLong) {
  // What a hook still waits for at the end.
  class WaitingHook final : public Hook {
   public:
    Status End(session::Session& session, int64_t) override {
      return session.Run({}, {}, {"never"}, nullptr);
    }
  } waiting;
  GraphBuilder& b = program_.builder();
  const Endpoint queue =
      b.Op("FIFOQueueV2", {}, {{"component_types", AttrValue::TypeList{DType::kInt32}}});
  b.AddNode("QueueDequeueV2", {queue}, {{"component_types", AttrValue::TypeList{DType::kInt32}}},
            "never");
  options_.hooks = {&waiting};
  options_.stop_grace = absl::Milliseconds(50);
  EXPECT_EQ(Create()->End().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(MonitoredSessionTest, AnIteratorGoesOnWithTheCheckpoint) {
  const DatasetIterator numbers = AddIterator(program_, Dataset::Range(program_.builder(), 0, 100));
  auto saver = Saver::Create(program_, {.files = &disk_});
  ASSERT_TRUE(saver.ok()) << saver.status();
  options_.saver = saver->get();
  const auto save = SaveCheckpoints(saver->get(), "/model", Every::Steps(2));
  options_.hooks = {save.get()};
  const auto next = [&](MonitoredSession& session) {
    std::vector<Tensor> values;
    EXPECT_TRUE(session.Run({}, {numbers.next[0]}, {train_}, &values).ok());
    return values.empty() ? -1 : values[0].scalar<int64_t>();
  };
  auto session = Create();
  EXPECT_EQ(next(*session), 0);
  EXPECT_EQ(next(*session), 1);  // saved here
  EXPECT_EQ(next(*session), 2);
  // The peer is lost with the next step, and two elements with it.
  failing_ = steps_ + 1;
  EXPECT_EQ(next(*session), 2);
  EXPECT_EQ(next(*session), 3);
  EXPECT_EQ(session->global_step(), 4);
}

// What MonitoredTrainingSession of TensorFlow's is given.
class TrainingTest : public MonitoredSessionTest {
 protected:
  void SetUp() override {
    MonitoredSessionTest::SetUp();
    folder_ = std::filesystem::temp_directory_path() / absl::StrCat("weft_training_", getpid());
    std::filesystem::remove_all(folder_);
    training_.make_session = [] {
      return session::NewDirectSession(
          {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 1});
    };
    training_.checkpoint_folder = folder_ / "model";
    training_.train = train_;
    program_.AddSummary(program_.builder().Op(
        "ScalarSummary",
        {program_.builder().Scalar<std::string>("one"), program_.builder().Scalar<float>(1)}));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  int64_t TrainTo(int64_t step) {
    const auto stop = StopAtStep(step);
    training_.hooks = {stop.get()};
    auto session = MonitoredSession::CreateTraining(program_, training_);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return -1;
    const int64_t first = (*session)->global_step();
    while (!(*session)->ShouldStop()) {
      EXPECT_TRUE((*session)->Run({}, {}, {train_}, nullptr).ok());
    }
    EXPECT_TRUE((*session)->End().ok());
    return first;
  }
  int Files(const std::string& folder, const std::string& part) const {
    int count = 0;
    if (!std::filesystem::exists(folder)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      count += absl::StrContains(entry.path().filename().string(), part) ? 1 : 0;
    }
    return count;
  }

  std::filesystem::path folder_;
  TrainingOptions training_;
};

TEST_F(TrainingTest, TheChiefSavesSummarisesAndResumes) {
  training_.save_checkpoint = Every::Steps(3);
  training_.save_summaries = Every::Steps(2);
  training_.summary_folder = folder_ / "summaries";
  EXPECT_EQ(TrainTo(7), 0);
  // At the start, twice by steps and at the end.
  EXPECT_EQ(Files(folder_ / "model", ".index"), 4);
  EXPECT_EQ(Files(folder_ / "model", "events"), 0);
  EXPECT_EQ(Files(folder_ / "summaries", "events"), 2);
  EXPECT_EQ(TrainTo(9), 7);
}

TEST_F(TrainingTest, OthersOnlyTrain) {
  training_.save_checkpoint = Every::Steps(3);
  training_.is_chief = false;
  training_.max_wait = absl::Milliseconds(50);
  // Nobody initializes anything.
  const auto session = MonitoredSession::CreateTraining(program_, training_);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Files(folder_ / "model", ""), 0);
}

}  // namespace
}  // namespace weft::train
