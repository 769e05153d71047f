// SPDX-License-Identifier: Apache-2.0
#include "platform/search/local_trials.h"

#include <stdlib.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/pipe.h"
#include "platform/search/trial_table.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

// A study in a folder of its own, whose trials are shell programs.
class LocalTrialsTest : public ::testing::Test {
 protected:
  LocalTrialsTest() {
    char name[] = "/tmp/weft_trials_XXXXXX";
    options_.folder = ::mkdtemp(name);
    options_.objective.metric = "loss";
    options_.objective.additional = {"steps"};
    options_.objective.strategies = {{"steps", MetricStrategy::kLatest}};
    options_.trials = 8;
    options_.parallel = 3;
    header_.Set("space", "x=0..9");
  }
  ~LocalTrialsTest() override {
    const auto names = files_.List(options_.folder);
    if (names.ok()) {
      for (const std::string& name : *names) (void)files_.Delete(options_.folder + "/" + name);
    }
    (void)files_.Delete(options_.folder);
  }

  // As a new process: what ran before stands in the journal alone.
  Status Run(const char* program, int stop_fd = -1) {
    return RunWords({"/bin/sh", "-c", program}, stop_fd);
  }
  Status RunWords(std::vector<std::string> program, int stop_fd) {
    options_.program = std::move(program);
    study_ = Study::Create(ParseSearchSpace("x=0..9").value(), {.algorithm = "sobol"}).value();
    metrics_.clear();
    auto journal = StudyJournal::Open(files_, options_.folder + "/study.jsonl", header_,
                                      study_.get(), &metrics_);
    if (!journal.ok()) return journal.status();
    LocalTrials trials(options_, files_, study_.get(), journal->get(), &metrics_,
                       [this](const SearchTrial& trial, const std::string& failure) {
                         ended_[trial.number] = failure;
                       });
    return trials.Run(stop_fd);
  }

  RealFileSystem files_;
  LocalTrialsOptions options_;
  Json header_ = Json::MakeObject();
  std::unique_ptr<Study> study_;
  std::map<int64_t, TrialMetrics> metrics_;
  std::map<int64_t, std::string> ended_;
};

TEST_F(LocalTrialsTest, TheBestPrintedValueCounts) {
  ASSERT_TRUE(
      Run("echo step 1: loss=9{x} steps=1; echo loss = {x}.5 steps=2; echo loss=1{x}.").ok());
  ASSERT_EQ(study_->trials().size(), 8);
  for (const SearchTrial& trial : study_->trials()) {
    EXPECT_EQ(trial.objective, trial.values[0] + 0.5);
    EXPECT_EQ(metrics_[trial.number]["steps"], 2);
  }
  const std::string table =
      FormatTrials(*study_, metrics_, {"loss", "steps"}, false, TableForm::kCsv);
  EXPECT_THAT(table, ::testing::StartsWith("trialName,loss,steps,x,status\ntrial-"));
  EXPECT_THAT(table, HasSubstr(",2,"));
}

TEST_F(LocalTrialsTest, FailuresAreToldAndEndTheSearchWhenThereAreTooMany) {
  options_.most_failed = 4;
  const Status status =
      Run("[ {x} -lt 3 ] && echo loss={x} || { [ {x} -gt 6 ] && exit 3; exit 0; }");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  bool exited = false, silent = false;
  for (const auto& [number, failure] : ended_) {
    exited = exited || failure == "exit code 3";
    silent = silent || failure == "printed no loss=number";
  }
  EXPECT_TRUE(exited && silent);
}

TEST_F(LocalTrialsTest, ATrialThatLastsTooLongIsEnded) {
  options_.trials = 1;
  options_.trial_limit = absl::Milliseconds(100);
  ASSERT_TRUE(Run("echo loss=1; sleep 60").ok());
  EXPECT_THAT(ended_[0], HasSubstr("longer than 100ms"));
}

TEST_F(LocalTrialsTest, AStoppedSearchGoesOn) {
  options_.parallel = 1;
  const Pipe stop = MakePipe().value();
  ASSERT_EQ(::write(stop.write.get(), "x", 1), 1);
  EXPECT_EQ(Run("sleep 60", stop.read.get()).code(), absl::StatusCode::kCancelled);
  ASSERT_EQ(study_->trials().size(), 1);
  const double first = study_->trials()[0].values[0];
  ASSERT_TRUE(Run("echo loss={x}").ok());
  ASSERT_EQ(study_->trials().size(), 8);
  EXPECT_EQ(study_->trials()[0].values[0], first);
  EXPECT_EQ(study_->trials()[0].objective, first);
  // All ended: nothing is left to do, and all is still known.
  ended_.clear();
  ASSERT_TRUE(Run("exit 1").ok());
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(metrics_.size(), 8);
}

TEST_F(LocalTrialsTest, ATornLastLineIsDroppedAndAnotherStudyIsRefused) {
  options_.trials = 3;
  ASSERT_TRUE(Run("echo loss={x}").ok());
  const std::string path = options_.folder + "/study.jsonl";
  const std::string text = ReadFile(files_, path, 1 << 20).value();
  ASSERT_TRUE(WriteFile(files_, path, text.substr(0, text.size() - 9)).ok());
  ASSERT_TRUE(Run("echo loss={x}").ok());
  EXPECT_EQ(ended_.size(), 3);
  EXPECT_EQ(metrics_.size(), 3);
  header_.Set("space", "x=0..8");
  const Status status = Run("echo loss={x}");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another study: its space is \"x=0..9\""));
}

TEST_F(LocalTrialsTest, AProgramThatCannotBeginFailsAndIsTold) {
  const Status status = RunWords({"/no/such/program"}, -1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("trial-0 cannot begin"));
  EXPECT_THAT(ended_[0], HasSubstr("/no/such/program"));
  EXPECT_EQ(study_->trials()[0].state, SearchTrial::State::kFailed);
}

TEST_F(LocalTrialsTest, NumbersThatAreNoneDoNotCount) {
  options_.trials = 3;
  options_.most_failed = 3;
  ASSERT_TRUE(Run("echo loss=nan; [ $WEFT_TRIAL = 0 ] || echo loss=inf; [ $WEFT_TRIAL = 1 ] || "
                  "echo loss=2; echo loss=NaN")
                  .ok());
  EXPECT_EQ(ended_[0], "");
  EXPECT_EQ(ended_[1], "printed only inf or nan as loss=number");
  EXPECT_EQ(study_->trials()[2].objective, 2);
  // The journal says the same.
  ended_.clear();
  ASSERT_TRUE(Run("exit 1").ok());
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(study_->trials()[1].state, SearchTrial::State::kFailed);
}

TEST_F(LocalTrialsTest, OneThatPrintsWithoutEndHoldsUpNobody) {
  options_.trials = 2;
  options_.parallel = 2;
  options_.trial_limit = absl::Seconds(1);
  ASSERT_TRUE(Run("echo loss=1; [ $WEFT_TRIAL = 1 ] || exec yes").ok());
  EXPECT_THAT(ended_[0], HasSubstr("longer than 1s"));
  EXPECT_EQ(ended_[1], "");
  EXPECT_LT(files_.Stat(options_.folder + "/trial-0.log").value().size_bytes, uint64_t{66} << 20);
}

TEST(TrialCommandTest, PlacesAreThoseOfParameters) {
  const SearchSpace space = ParseSearchSpace("lr=log(1e-4,1) momentum=0.0..1.0").value();
  EXPECT_TRUE(CheckPlaces({"./train", "-v"}, space).ok());
  EXPECT_TRUE(CheckPlaces({"sh", "-c", "awk '{print}'; echo ${HOME} {lr} {momentum}"}, space).ok());
  EXPECT_THAT(std::string(CheckPlaces({"./train", "{lr}", "{momentun}"}, space).message()),
              HasSubstr("there is no parameter 'momentun'. Did you mean {momentum}?"));
  EXPECT_THAT(std::string(CheckPlaces({"./train", "{lr}"}, space).message()),
              HasSubstr("no word of the program has {momentum}"));
}

TEST(TrialCommandTest, ParametersStandInTheirPlacesOrAtTheEnd) {
  const SearchSpace space = ParseSearchSpace("num-layers=2..5 lr=log(1e-4,1)").value();
  const SearchTrial trial{.number = 1, .values = {3, 0.001}};
  EXPECT_EQ(TrialCommand({"./train", "-v"}, space, trial),
            (std::vector<std::string>{"./train", "-v", "--num-layers=3", "--lr=0.001"}));
  EXPECT_EQ(TrialCommand({"./train", "n={num-layers}", "{lr}"}, space, trial),
            (std::vector<std::string>{"./train", "n=3", "0.001"}));
}

TEST(MetricReaderTest, NamesAreWholeWordsAndNumbersMayEndSentences) {
  MetricReader reader({"accuracy", "Validation-accuracy"});
  reader.Read("epoch 3: Validation-accuracy=0.5, accuracy= 0.25.\nmy_accuracy=7 accuracy=x\naccu");
  reader.Read("racy=1e-3");
  reader.Finish();
  EXPECT_EQ(reader.values().at("accuracy"), (std::vector<double>{0.25, 1e-3}));
  EXPECT_EQ(reader.values().at("Validation-accuracy"), (std::vector<double>{0.5}));
}

}  // namespace
}  // namespace weft::platform
