// SPDX-License-Identifier: Apache-2.0
// An experiment of many trials: what it keeps of each, and how long a look at all of them takes.
// WEFT_TRIALS=100000 asks for more of them.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/tuning/trial_object.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_controllers.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

// Of a trial, in the store and in the controllers: a hundred thousand take less than 500 MB.
constexpr int64_t kMostBytes = 4500;

constexpr char kManyTrials[] = R"yaml(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: many, uid: many}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy, additionalMetricNames: [loss]}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
  - {name: layers, parameterType: int, feasibleSpace: {min: "2", max: "5"}}
  trialTemplate:
    primaryContainerName: training
    trialParameters: [{name: learningRate, reference: lr}, {name: layers, reference: layers}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: training
              image: train:1
              command: [train, "--lr=${trialParameters.learningRate}", "--layers=${trialParameters.layers}"]
)yaml";

int64_t ResidentBytes() {
  int64_t pages = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t WantedTrials() {
  int64_t count = 0;
  const char* const text = std::getenv("WEFT_TRIALS");
  return text != nullptr && absl::SimpleAtoi(text, &count) ? count : 2000;
}

class ManyTrialsTest : public ::testing::Test {
 protected:
  ManyTrialsTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    options.history_window = 1000;
    store_ = EmbeddedStore::Open(std::move(options)).value();
  }

  // As it is when it has run.
  void AddEndedTrial(const Json& experiment, int64_t number) {
    Problems problems("");
    const Experiment parsed = ParseExperiment(experiment, &problems);
    GivenSuggestion given;
    given.number = number;
    given.name = TrialName(experiment, number);
    given.assignments = {{"lr", absl::StrCat(0.01 + static_cast<double>(number) * 1e-7)},
                         {"layers", absl::StrCat(2 + number % 4)}};
    Json trial = MakeTrial(experiment, parsed, "", given, {}).value();
    const auto made = store_->Create(Trials(), "default", std::move(trial), {});
    ASSERT_TRUE(made.ok()) << made.status();
    const MetricSeries series = {{"accuracy", {0.1, 0.2, 0.3 + static_cast<double>(number) * 1e-7}},
                                 {"loss", {3, 2, 1}}};
    Json status = Json::MakeObject();
    status.Set("startTime", FormatObjectTime(clock_.Now()));
    for (const char* const type : {"Created", "Running", "Succeeded"})
      MarkCondition(type, std::string(type) != "Running", absl::StrCat("Trial", type),
                    "Trial is there", clock_.Now(), &status);
    status.Set("completionTime", FormatObjectTime(clock_.Now()));
    status.Set("observation", ObservationOf(parsed.objective, series));
    status.Set("reported", ReportedJson(series));
    Json changed = **made;
    changed.Set("status", std::move(status));
    WriteOptions options;
    options.subresource = "status";
    ASSERT_TRUE(store_->Update(Trials(), std::move(changed), options).ok());
  }

  // Those that were not made by AddEndedTrial: their number is the newest.
  ListOptions RunningTrials() const {
    ListOptions options;
    options.label_selector = absl::StrCat(kTrialNumberLabel, "=", WantedTrials());
    return options;
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(ManyTrialsTest, AreKeptInFewBytesAndLookedAtTogether) {
  const int64_t count = WantedTrials();
  Json wanted = ParseYaml(kManyTrials, "test").value()[0];
  SetField(&wanted, {"spec", "maxTrialCount"}, count + 3);
  const ObjectPtr experiment = store_->Create(Experiments(), "default", wanted, {}).value();
  const int64_t before = ResidentBytes();
  for (int64_t number = 0; number < count; ++number) AddEndedTrial(*experiment, number);
  const int64_t stored = ResidentBytes();

  TuningControllers::Options options;
  options.frame.store = store_.get();
  options.frame.clock = &clock_;
  options.read_output = [](const ObjectPtr&, const std::string&) -> StatusOr<std::string> {
    return FailedPrecondition("not yet");
  };
  TuningControllers tuning(std::move(options));
  const RealClock real;
  const absl::Duration began = real.Monotonic();
  tuning.Settle();
  const absl::Duration took = real.Monotonic() - began;
  const int64_t all = ResidentBytes();

  const ObjectPtr looked = store_->Get(Experiments(), {"default", "many"}).value();
  EXPECT_EQ(IntField(*looked, {"status", "trialsSucceeded"}), count);
  EXPECT_EQ(IntField(*looked, {"status", "trials"}), count + 2);
  EXPECT_LT(looked->Dump().size(), 200000u);
  // Small numbers say more about what a page of memory is than about trials.
  if (count >= 10000) {
    EXPECT_LT((all - before) / count, kMostBytes);
  }
  // One more ends: the others are not looked at again.
  const std::string name = NameOf(*store_->List(Trials(), RunningTrials()).value().items.at(0));
  Json patch;
  SetField(&patch, {"metadata", "annotations", kStopAnnotation}, "true");
  ASSERT_TRUE(store_->Patch(Trials(), {"default", name}, PatchKind::kMerge, patch, {}).ok());
  const std::clock_t worked = std::clock();
  tuning.Settle();
  const double again = static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC;
  EXPECT_EQ(IntField(*store_->Get(Experiments(), {"default", "many"}).value(),
                     {"status", "trialsKilled"}),
            1);
  std::printf(
      "%lld trials: %lld bytes each in the store, %lld in the controllers, looked at in %s; when "
      "one more ends %.1f ms\n",
      static_cast<long long>(count), static_cast<long long>((stored - before) / count),
      static_cast<long long>((all - stored) / count), absl::FormatDuration(took).c_str(),
      1000 * again);
}

// Jobs that run for a while and succeed, without processes: what is measured is what keeps them
// coming.
class JobRunner {
 public:
  JobRunner(ObjectStore* store, absl::Duration lasts) : store_(store), lasts_(lasts) {
    watch_ = store_
                 ->StartWatch(BatchJobs(), {},
                              [this](const WatchEvent& event) {
                                if (event.kind != WatchEvent::Kind::kAdded) return;
                                absl::MutexLock lock(&mutex_);
                                running_.push_back({clock_.Monotonic(), NameOf(*event.object)});
                              })
                 .value();
  }

  // Until so many have ended; how many slots of `slots` were taken, on the average from the moment
  // on at which as many as there are had begun.
  double Run(size_t slots, int64_t count) {
    double busy = 0;
    absl::Duration last = absl::InfiniteDuration();
    absl::Duration measured;
    while (ended_ < count) {
      absl::SleepFor(absl::Milliseconds(20));
      const absl::Duration now = clock_.Monotonic();
      std::vector<std::string> due;
      size_t held = 0;
      {
        absl::MutexLock lock(&mutex_);
        held = running_.size();
        while (!running_.empty() && running_.front().first + lasts_ <= now) {
          due.push_back(running_.front().second);
          running_.pop_front();
        }
      }
      if (last < absl::InfiniteDuration()) {
        busy += absl::ToDoubleSeconds(now - last) * static_cast<double>(held);
        measured += now - last;
      }
      if (last < absl::InfiniteDuration() || held >= slots) last = now;
      for (const std::string& name : due) End(name);
    }
    return busy / absl::ToDoubleSeconds(measured) / static_cast<double>(slots);
  }

 private:
  void End(const std::string& name) {
    WriteOptions options;
    options.subresource = "status";
    options.is_strict = false;
    const auto write = [&](const ResourceType& type, const char* patch) {
      const auto done = store_->Patch(type, {"default", name}, PatchKind::kMerge,
                                      Json::Parse(patch).value(), options);
      EXPECT_TRUE(done.ok()) << done.status();
    };
    write(Trials(), R"({"status":{"reported":[{"name":"accuracy","values":[0.5]}]}})");
    write(BatchJobs(), R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
    ++ended_;
  }

  ObjectStore* const store_;
  const absl::Duration lasts_;
  const RealClock clock_;
  int64_t ended_ = 0;
  absl::Mutex mutex_;
  std::deque<std::pair<absl::Duration, std::string>> running_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Watch> watch_;
};

// WEFT_SLOTS=3600 WEFT_TRIAL_SECONDS=60: 120 experiments of 30 trials at once, as in a report on
// Katib (kubeflow/katib #1328), where 160 of them ever ran.
TEST_F(ManyTrialsTest, KeepSlotsBusy) {
  const auto number_of = [](const char* name, int64_t missing) {
    int64_t number = 0;
    const char* const text = std::getenv(name);
    return text != nullptr && absl::SimpleAtoi(text, &number) ? number : missing;
  };
  constexpr int64_t kAtOnce = 30;
  const int64_t slots = number_of("WEFT_SLOTS", 60);
  const int64_t seconds = number_of("WEFT_TRIAL_SECONDS", 1);
  const RealClock real;
  EmbeddedStore::Options store_options;
  store_options.clock = &real;
  const std::unique_ptr<EmbeddedStore> store =
      EmbeddedStore::Open(std::move(store_options)).value();
  TuningControllers::Options options;
  options.frame.store = store.get();
  options.frame.clock = &real;
  JobRunner runner(store.get(), absl::Seconds(seconds));
  TuningControllers tuning(std::move(options));
  tuning.Start(2);
  Json wanted = ParseYaml(kManyTrials, "test").value()[0];
  wanted.FindMutable("metadata")->Erase("uid");
  SetField(&wanted, {"spec", "parallelTrialCount"}, kAtOnce);
  SetField(&wanted, {"spec", "metricsCollectorSpec", "collector", "kind"}, "Push");
  const std::clock_t began = std::clock();
  for (int64_t i = 0; i < slots / kAtOnce; ++i) {
    SetField(&wanted, {"metadata", "name"}, absl::StrCat("many-", i));
    ASSERT_TRUE(store->Create(Experiments(), "default", wanted, {}).ok());
  }
  const double busy = runner.Run(static_cast<size_t>(slots), 3 * slots);
  const double each =
      static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC / static_cast<double>(3 * slots);
  std::printf(
      "%lld slots, trials of %lld s: %.1f%% of the slots busy, %.1f ms of processor time a trial\n",
      static_cast<long long>(slots), static_cast<long long>(seconds), 100 * busy, 1000 * each);
  // Processor time says what a busy machine does not.
  EXPECT_LT(each, 0.05);
  if (seconds >= 20) {
    EXPECT_GE(busy, 0.95);
  }
}

}  // namespace
}  // namespace weft::platform
