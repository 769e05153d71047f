// SPDX-License-Identifier: Apache-2.0
// Experiments under faults: the controllers killed or refused at each of their calls, metrics late
// or never, trials deleted by hand, by chance from a seed; and planted bugs, which must be found.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/search/random_numbers.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/faulty_store.h"
#include "platform/store/passing_store.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_controllers.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

constexpr int64_t kTrialCount = 7, kParallel = 3;

constexpr char kText[] = R"yaml(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: e}
spec:
  objective: {type: maximize, objectiveMetricName: accuracy}
  algorithm: {algorithmName: random}
  parallelTrialCount: 3
  maxTrialCount: 7
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec: {apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never,
      containers: [{name: main, image: i, command: [train, "${trialParameters.x}"]}]}}}}
)yaml";

enum class Bug {
  kNone,
  kForgetsWhatItGave,      // suggestions are not written down
  kNamesByChance,          // a trial that is made again is another one
  kForgetsWhatWasDeleted,  // what became a trial is not noted
  kRunsTwice,              // a trial's job is made under a second name too
  kLosesMetrics,           // what a trial reported is not written down
  kLeavesJobs,             // the jobs of trials that are over stay
  kNamesTheWorst,          // as the best trial
  kForgetsEnds             // that a trial has ended is written as if it ran
};
constexpr Bug kBugs[] = {Bug::kForgetsWhatItGave, Bug::kNamesByChance, Bug::kForgetsWhatWasDeleted,
                         Bug::kRunsTwice,         Bug::kLosesMetrics,  Bug::kLeavesJobs,
                         Bug::kNamesTheWorst,     Bug::kForgetsEnds};

// Stands between the controllers and their store, and does what a wrong controller would.
class BuggyStore : public PassingStore {
 public:
  BuggyStore(ObjectStore* below, Bug bug) : PassingStore(below), bug_(bug) {}

  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& space, Json object,
                             const WriteOptions& options) override {
    if (type == Trials() && bug_ == Bug::kNamesByChance)
      SetField(&object, {"metadata", "name"}, absl::StrCat(NameOf(object), "-", ++names_));
    if (type == Trials() && first_trial_.empty()) first_trial_ = NameOf(object);
    if (type == BatchJobs()) {
      ++jobs_made_[NameOf(object)];
      Json second = object;
      SetField(&second, {"metadata", "name"}, NameOf(object) + "-again");
      if (bug_ == Bug::kRunsTwice)
        (void)PassingStore::Create(type, space, std::move(second), options);
    }
    return PassingStore::Create(type, space, std::move(object), options);
  }
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override {
    if (type == Suggestions() && bug_ == Bug::kForgetsWhatItGave)
      SetField(&object, {"status", "suggestions"}, Json::MakeArray());
    if (type == Suggestions() && bug_ == Bug::kForgetsWhatWasDeleted) {
      Json* const list = object.FindMutable("status")->FindMutable("suggestions");
      for (Json& given : *list->mutable_items()) given.Erase("created");
    }
    Json* const status = object.FindMutable("status");
    if (type == Trials() && status != nullptr) {
      if (bug_ == Bug::kLosesMetrics) status->Erase("observation");
      if (bug_ == Bug::kForgetsEnds && ++ends_ % 3 == 0) status->Erase("completionTime");
    }
    if (type == Experiments() && bug_ == Bug::kNamesTheWorst && status != nullptr &&
        status->Find("currentOptimalTrial") != nullptr)
      SetField(status, {"currentOptimalTrial", "bestTrialName"}, first_trial_);
    return PassingStore::Update(type, std::move(object), options);
  }

  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override {
    if (type == BatchJobs() && bug_ == Bug::kLeavesJobs) return PassingStore::Get(type, name);
    return PassingStore::Delete(type, name, options);
  }

  const std::map<std::string, int>& jobs_made() const { return jobs_made_; }

 private:
  const Bug bug_;
  int names_ = 0;
  int ends_ = 0;
  std::string first_trial_;
  std::map<std::string, int> jobs_made_;
};

class TuningWorld {
 public:
  TuningWorld(uint64_t seed, Bug bug) : random_(seed, 0) {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    buggy_ = std::make_unique<BuggyStore>(store_.get(), bug);
  }

  // The controllers as a new process, which fails at that call of its own; -1: never.
  void StartProcess(int64_t at, Fault fault) {
    tuning_.reset();
    faulty_ = std::make_unique<FaultyStore>(buggy_.get(), at, fault);
    TuningControllers::Options options;
    options.frame.store = faulty_.get();
    options.frame.clock = &clock_;
    options.read_output = [this](const ObjectPtr& pod, const std::string&) {
      return ReadOutputOf(NameOf(*pod));
    };
    tuning_ = std::make_unique<TuningControllers>(std::move(options));
  }

  void Begin() {
    ASSERT_TRUE(
        store_->Create(Experiments(), "default", ParseYaml(kText, "test").value()[0], {}).ok());
  }
  void Settle() {
    clock_.Advance(absl::Seconds(31));  // whatever waits for another try
    tuning_->Settle();
    Check();
  }
  bool IsDead() const { return faulty_->is_dead(); }
  int64_t calls() const { return faulty_->calls(); }

  std::vector<ObjectPtr> List(const ResourceType& type) {
    return store_->List(type, {"default"}).value().items;
  }
  // Those whose jobs run.
  std::vector<std::string> Running() {
    std::vector<std::string> names;
    for (const ObjectPtr& job : List(BatchJobs())) {
      if (ConditionOf(*job, "Complete") == nullptr && !IsTerminating(*job))
        names.push_back(NameOf(*job));
    }
    return names;
  }
  // Its job ends; `reports` false: it says nothing of accuracy. Late metrics come with the second
  // look at the output.
  void End(const std::string& trial, bool reports, bool is_late) {
    Json pod = Json::Parse(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[
        {"name":"main","image":"i"}]}})")
                   .value();
    SetField(&pod, {"metadata", "name"}, trial + "-pod");
    SetField(&pod, {"metadata", "labels", kTrialLabel}, trial);
    (void)store_->Create(Pods(), "default", pod, {});
    const std::string accuracy = absl::StrCat(0.1 + 0.001 * static_cast<double>(outputs_.size()));
    outputs_[trial + "-pod"] = {reports ? absl::StrCat("accuracy=", accuracy, "\n") : "nothing\n",
                                is_late ? 1 : 0};
    if (reports) reported_[trial] = accuracy;
    WriteOptions status;
    status.subresource = "status";
    status.is_strict = false;
    (void)store_->Patch(
        BatchJobs(), {"default", trial}, PatchKind::kMerge,
        Json::Parse(R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})").value(),
        status);
  }
  void DeleteByHand(const std::string& trial) {
    (void)store_->Delete(Trials(), {"default", trial}, {});
    deleted_.insert(trial);
  }

  bool IsOver() {
    const ObjectPtr e = store_->Get(Experiments(), {"default", "e"}).value();
    return IsConditionTrue(*e, "Succeeded") || IsConditionTrue(*e, "Failed");
  }

  // What must be so at any time.
  void Check() {
    std::map<int64_t, int> numbers;
    int64_t active = 0;
    for (const ObjectPtr& trial : List(Trials())) {
      if (deleted_.count(NameOf(*trial)) > 0) Wrong(NameOf(*trial), " was deleted and is back");
      if (++numbers[TrialView(*trial).number()] > 1)
        Wrong("trial ", TrialView(*trial).number(), " is there twice");
      active += TrialView(*trial).is_over() ? 0 : 1;
    }
    if (active > kParallel) Wrong(active, " trials run at a time");
    for (const ObjectPtr& job : List(BatchJobs())) {
      const bool has_trial = store_->Get(Trials(), {"default", NameOf(*job)}).ok();
      if (!has_trial && !IsTerminating(*job) && deleted_.count(NameOf(*job)) == 0)
        Wrong("job ", NameOf(*job), " has no trial");
    }
    if (!numbers.empty() && numbers.rbegin()->first >= kTrialCount)
      Wrong("there is a trial ", numbers.rbegin()->first);
  }
  // In the end.
  void CheckEnd() {
    if (!IsOver()) return Wrong("it does not end");
    const size_t trials = List(Trials()).size();
    if (trials + deleted_.size() != kTrialCount)
      Wrong(trials, " trials and ", deleted_.size(), " deleted ones");
    const ObjectPtr e = store_->Get(Experiments(), {"default", "e"}).value();
    if (IntField(*e, {"status", "trials"}) != static_cast<int64_t>(trials))
      Wrong("the status counts ", IntField(*e, {"status", "trials"}), " of ", trials, " trials");
    for (const ObjectPtr& trial : List(Trials())) CheckEndOf(*trial);
    const std::string best = StringField(*e, {"status", "currentOptimalTrial", "bestTrialName"});
    for (const auto& [name, accuracy] : reported_) {
      const bool counts =
          deleted_.count(name) == 0 && store_->Get(Trials(), {"default", name}).ok();
      if (counts && (reported_.count(best) == 0 || reported_[best] < accuracy))
        Wrong("the best trial is ", best, ", though ", name, " reported ", accuracy);
    }
    for (const auto& [name, count] : buggy_->jobs_made()) {
      // A create whose answer was lost is tried again, and finds what it made.
      if (count > 2) Wrong("job ", name, " was made ", count, " times");
    }
  }
  void CheckEndOf(const Json& trial) {
    const std::string name = NameOf(trial);
    if (StringField(trial, {"status", "completionTime"}).empty())
      Wrong(name, " has no time of its end");
    if (store_->Get(BatchJobs(), {"default", name}).ok()) Wrong("the job of ", name, " is left");
    const Json::Array& metrics = ListField(trial, {"status", "observation", "metrics"});
    const std::string seen = metrics.empty() ? "none" : StringField(metrics[0], {"max"});
    if (reported_.count(name) > 0 && seen != reported_[name])
      Wrong(name, " reported ", reported_[name], ", and ", seen, " is written down");
  }
  // The trials in words.
  std::string Describe() {
    std::map<int64_t, std::string> lines;
    for (const ObjectPtr& trial : List(Trials())) {
      lines[TrialView(*trial).number()] =
          absl::StrCat(NameOf(*trial).size(), TrialView(*trial).assignments()[0].second, " ",
                       static_cast<int>(TrialView(*trial).state()), "\n");
    }
    std::string text;
    for (const auto& [number, line] : lines) absl::StrAppend(&text, number, " ", line);
    return text;
  }

  RandomNumbers& random() { return random_; }
  const std::string& wrong() const { return wrong_; }

 private:
  template <typename... Args>
  void Wrong(const Args&... args) {
    if (wrong_.empty()) wrong_ = absl::StrCat(args...);
  }
  StatusOr<std::string> ReadOutputOf(const std::string& pod) {
    const auto found = outputs_.find(pod);
    if (found == outputs_.end() || found->second.second-- > 0)
      return FailedPrecondition("not there yet");
    return found->second.first;
  }

  RandomNumbers random_;
  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<BuggyStore> buggy_;
  std::unique_ptr<FaultyStore> faulty_;
  std::unique_ptr<TuningControllers> tuning_;
  std::map<std::string, std::pair<std::string, int>> outputs_;  // and how often it is not there yet
  std::map<std::string, std::string> reported_;                 // of trials that ended
  std::set<std::string> deleted_;
  std::string wrong_;
};

// The same fates each time; what is left in words, and how many calls it took.
std::string RunScript(int64_t at, Fault fault, int64_t* calls) {
  TuningWorld world(0, Bug::kNone);
  world.StartProcess(at, fault);
  world.Begin();
  for (int round = 0; round < 40 && !(world.IsOver() && round > 30); ++round) {
    world.Settle();
    *calls = std::max(*calls, world.calls());
    if (world.IsDead()) world.StartProcess(-1, fault);
    for (const std::string& name : world.Running()) world.End(name, true, round % 2 == 1);
  }
  world.Settle();
  world.CheckEnd();
  EXPECT_EQ(world.wrong(), "") << "at call " << at;
  return world.Describe();
}

TEST(TuningFaultsTest, KilledOrRefusedAtItsCalls) {
  int64_t calls = 0;
  const std::string without = RunScript(-1, Fault::kRefused, &calls);
  EXPECT_GT(calls, 40);
  // Each fault at every fourth call, at others each.
  for (const Fault fault : kFaults) {
    for (int64_t at = static_cast<int64_t>(fault); at < calls; at += 4) {
      int64_t ignored = 0;
      const std::string with = RunScript(at, fault, &ignored);
      ASSERT_EQ(with, without) << "fault " << static_cast<int>(fault) << " at call " << at;
    }
  }
}

// Everything by chance: ends, late and missing metrics, deletions, several deaths.
std::string RunByChance(uint64_t seed, Bug bug) {
  TuningWorld world(seed, bug);
  RandomNumbers& random = world.random();
  const auto start = [&] {
    const bool dies = random.Uniform() < 0.7;
    world.StartProcess(dies ? random.Below(40) : -1, kFaults[random.Below(4)]);
  };
  start();
  world.Begin();
  for (int round = 0; round < 150; ++round) {
    if (round > 100 && world.IsDead()) {
      world.StartProcess(-1, Fault::kRefused);
    } else if (world.IsDead() || random.Uniform() < 0.05) {
      start();
    }
    world.Settle();
    for (const std::string& name : world.Running()) {
      const double fate = random.Uniform();
      if (fate < 0.05) {
        world.DeleteByHand(name);
      } else if (fate < 0.4) {
        world.End(name, random.Uniform() < 0.8, random.Uniform() < 0.3);
      }
    }
  }
  world.StartProcess(-1, Fault::kRefused);
  for (int round = 0; round < 20; ++round) {
    for (const std::string& name : world.Running()) world.End(name, true, false);
    world.Settle();
  }
  world.CheckEnd();
  return world.wrong();
}

TEST(TuningFaultsTest, ByChance) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_EQ(RunByChance(seed, Bug::kNone), "") << "seed " << seed;
  }
}

TEST(TuningFaultsTest, PlantedBugsAreFound) {
  for (const Bug bug : kBugs) {
    bool is_found = false;
    for (uint64_t seed = 1; seed <= 60 && !is_found; ++seed)
      is_found = !RunByChance(seed, bug).empty();
    EXPECT_TRUE(is_found) << static_cast<int>(bug);
  }
}

}  // namespace
}  // namespace weft::platform
