// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/tuning_controllers.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kExperiment[] = R"yaml(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: random}
spec:
  objective: {type: maximize, goal: 0.99, objectiveMetricName: accuracy, additionalMetricNames: [loss]}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 5
  maxFailedTrialCount: 2
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
  - {name: layers, parameterType: int, feasibleSpace: {min: "2", max: "5"}}
  trialTemplate:
    primaryContainerName: training
    trialParameters:
    - {name: learningRate, reference: lr}
    - {name: layers, reference: layers}
    - {name: me, reference: "${trialSpec.Name}"}
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
              env: [{name: ME, value: "${trialParameters.me}"}]
)yaml";

Json Yaml(absl::string_view text) { return ParseYaml(text, "test").value()[0]; }

class TuningTest : public ::testing::Test {
 protected:
  TuningTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    StartAnew();
  }

  // As a process that was killed and comes back.
  void StartAnew() {
    tuning_.reset();
    TuningControllers::Options options;
    options.frame.store = store_.get();
    options.frame.clock = &clock_;
    options.read_output = [this](const ObjectPtr& pod,
                                 const std::string&) -> StatusOr<std::string> {
      const auto found = outputs_.find(NameOf(*pod));
      if (found == outputs_.end()) return FailedPrecondition("not yet");
      return found->second;
    };
    tuning_ = std::make_unique<TuningControllers>(std::move(options));
  }

  void Submit(Json experiment) {
    const auto created = store_->Create(Experiments(), "default", std::move(experiment), {});
    ASSERT_TRUE(created.ok()) << created.status();
    tuning_->Settle();
  }
  Status Refused(Json experiment) {
    return store_->Create(Experiments(), "default", std::move(experiment), {}).status();
  }
  Json Read(const ResourceType& type, const std::string& name) {
    const auto found = store_->Get(type, {"default", name});
    return found.ok() ? **found : Json();
  }
  std::vector<ObjectPtr> List(const ResourceType& type) {
    return store_->List(type, {"default"}).value().items;
  }
  std::vector<std::string> Active() {
    std::vector<std::string> names;
    for (const ObjectPtr& trial : List(Trials())) {
      if (!TrialView(*trial).is_over()) names.push_back(NameOf(*trial));
    }
    return names;
  }
  void SetStatus(const ResourceType& type, const std::string& name, const char* patch) {
    WriteOptions options;
    options.subresource = "status";
    options.is_strict = false;
    const auto done = store_->Patch(type, {"default", name}, PatchKind::kMerge,
                                    Json::Parse(patch).value(), options);
    ASSERT_TRUE(done.ok()) << done.status();
  }
  void MakePod(const std::string& trial, const std::string& output) {
    Json pod = Json::Parse(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[
        {"name":"training","image":"i"}]}})")
                   .value();
    SetField(&pod, {"metadata", "name"}, trial + "-pod");
    SetField(&pod, {"metadata", "labels", kTrialLabel}, trial);
    (void)store_->Create(Pods(), "default", pod, {});
    outputs_[trial + "-pod"] = output;
  }
  void EndJob(const std::string& trial, bool succeeds = true) {
    SetStatus(BatchJobs(), trial,
              succeeds ? R"({"status":{"conditions":[{"type":"Complete","status":"True",
                             "reason":"CompletionsReached","message":"Reached"}]}})"
                       : R"({"status":{"conditions":[{"type":"Failed","status":"True",
                             "reason":"BackoffLimitExceeded","message":"too often"}]}})");
    tuning_->Settle();
  }
  void Succeed(const std::string& trial, double accuracy) {
    MakePod(trial, absl::StrCat("epoch 1: accuracy=0.1 loss=3\nepoch 2: accuracy=", accuracy,
                                " loss=1\n"));
    clock_.Advance(absl::Seconds(1));
    EndJob(trial);
  }
  std::string LastCondition(const Json& object) {
    const Json::Array& all = ListField(object, {"status", "conditions"});
    return all.empty() ? "" : StringField(all.back(), {"reason"});
  }
  int64_t Count(const char* field) {
    return IntField(Read(Experiments(), "random"), {"status", field});
  }

  FakeClock clock_{absl::FromUnixSeconds(1700000000)};
  std::map<std::string, std::string> outputs_;
  std::unique_ptr<EmbeddedStore> store_;
  std::unique_ptr<TuningControllers> tuning_;
};

TEST_F(TuningTest, AnExperimentRunsToItsEnd) {
  Submit(Yaml(kExperiment));
  EXPECT_THAT(Active(), SizeIs(2));
  EXPECT_THAT(List(BatchJobs()), SizeIs(2));
  const Json job = *List(BatchJobs())[0];
  const Json& container = ListField(job, {"spec", "template", "spec", "containers"})[0];
  EXPECT_THAT(ListField(container, {"command"})[1].AsString().value(), HasSubstr("--lr=0.0"));
  EXPECT_EQ(StringField(ListField(container, {"env"})[0], {"value"}), NameOf(job));
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(Active().empty());
    Succeed(Active()[0], 0.5 + 0.1 * (i == 2 ? 4 : i));
  }
  EXPECT_THAT(Active(), SizeIs(0));
  const Json experiment = Read(Experiments(), "random");
  EXPECT_EQ(LastCondition(experiment), "ExperimentMaxTrialsReached");
  EXPECT_EQ(Count("trials"), 5);
  EXPECT_EQ(Count("trialsSucceeded"), 5);
  EXPECT_EQ(Count("trialsRunning"), 0);
  const Json& best = *FindField(experiment, {"status", "currentOptimalTrial"});
  EXPECT_EQ(StringField(ListField(best, {"observation", "metrics"})[0], {"max"}), "0.9");
  EXPECT_EQ(StringField(ListField(best, {"observation", "metrics"})[1], {"min"}), "1");
  // Jobs go when they are over, without retain.
  EXPECT_THAT(List(BatchJobs()), SizeIs(0));
  EXPECT_EQ(LastCondition(Read(Suggestions(), "random")), "SuggestionSucceeded");
  EXPECT_EQ(IntField(Read(Suggestions(), "random"), {"status", "suggestionCount"}), 5);
  // Nothing is written any more.
  const std::string revision = RevisionOf(Read(Experiments(), "random"));
  StartAnew();
  tuning_->Settle();
  EXPECT_EQ(RevisionOf(Read(Experiments(), "random")), revision);
}

TEST_F(TuningTest, TheGoalEndsIt) {
  Submit(Yaml(kExperiment));
  Succeed(Active()[0], 0.995);
  EXPECT_EQ(LastCondition(Read(Experiments(), "random")), "ExperimentGoalReached");
  EXPECT_THAT(List(Trials()), SizeIs(2));
}

TEST_F(TuningTest, FailuresEndItAndMissingMetricsAreFailures) {
  Submit(Yaml(kExperiment));
  const std::string first = Active()[0];
  MakePod(first, absl::StrCat(std::string(3000, 'x'), "\nepoch 1\nTraceback: no module 'm'\n\n"));
  EndJob(first, /*succeeds=*/false);
  EXPECT_EQ(LastCondition(Read(Trials(), first)), "TrialFailed. Job reason: BackoffLimitExceeded");
  // Its pod goes; why it failed stays.
  EXPECT_EQ(StringField(Read(Trials(), first), {"status", "lastOutput"}),
            "epoch 1\nTraceback: no module 'm'");
  const std::string second = Active()[0];
  MakePod(second, "no number here\n");
  EndJob(second);
  EXPECT_EQ(TrialView(Read(Trials(), second)).state(), TrialState::kMetricsUnavailable);
  EXPECT_EQ(LastCondition(Read(Experiments(), "random")), "ExperimentFailed");
}

TEST_F(TuningTest, MetricsMayComeLateOrNever) {
  Submit(Yaml(kExperiment));
  const std::string trial = Active()[0];
  EndJob(trial);
  EXPECT_EQ(TrialView(Read(Trials(), trial)).state(), TrialState::kRunning);
  clock_.Advance(absl::Seconds(2));
  MakePod(trial, "accuracy=0.7\n");
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), trial)).state(), TrialState::kSucceeded);
  const std::string other = Active()[0];
  SetStatus(BatchJobs(), other,
            R"({"status":{"conditions":[{"type":"Complete","status":"True",
                "lastTransitionTime":"2023-11-14T22:13:22Z"}]}})");
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), other)).state(), TrialState::kRunning);
  clock_.Advance(absl::Minutes(1));
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), other)).state(), TrialState::kMetricsUnavailable);
}

TEST_F(TuningTest, WhatWasDeletedStaysDeletedAndCounts) {
  Submit(Yaml(kExperiment));
  const std::string gone = Active()[0];
  ASSERT_TRUE(store_->Delete(Trials(), {"default", gone}, {}).ok());
  tuning_->Settle();
  EXPECT_TRUE(Read(Trials(), gone).is_null());
  EXPECT_THAT(Active(), SizeIs(2));
  StartAnew();
  tuning_->Settle();
  EXPECT_TRUE(Read(Trials(), gone).is_null());
  while (!Active().empty()) Succeed(Active()[0], 0.5);
  EXPECT_THAT(List(Trials()), SizeIs(4));
  EXPECT_EQ(LastCondition(Read(Experiments(), "random")), "ExperimentMaxTrialsReached");
}

TEST_F(TuningTest, WhatIsStoppedByHandIsKilledAndKeptAndAnotherComes) {
  Submit(Yaml(kExperiment));
  const std::string first = Active()[0];
  Json patch;
  SetField(&patch, {"metadata", "annotations", kStopAnnotation}, "true");
  ASSERT_TRUE(store_->Patch(Trials(), {"default", first}, PatchKind::kMerge, patch, {}).ok());
  tuning_->Settle();
  EXPECT_EQ(LastCondition(Read(Trials(), first)), "TrialKilled");
  EXPECT_TRUE(Read(BatchJobs(), first).is_null());
  EXPECT_THAT(Active(), SizeIs(2));
  EXPECT_EQ(Count("trialsKilled"), 1);
}

TEST_F(TuningTest, SeveralObjectivesAndConstraints) {
  Json wanted = Yaml(kExperiment);
  EraseField(&wanted, {"spec", "objective", "goal"});
  SetField(&wanted, {"spec", "algorithm", "algorithmName"}, "nsga2");
  SetField(&wanted, {"spec", "objective", "additionalMetricNames"},
           Json(Json::Array{Json("loss"), Json("memory")}));
  Json bad = wanted;
  SetField(&bad, {"spec", "objective", "additionalObjectives"},
           Json::Parse(R"([{"metricName": "speed", "type": "maximize"}])").value());
  EXPECT_THAT(std::string(Refused(bad).message()), HasSubstr("a name of additionalMetricNames"));
  SetField(&wanted, {"spec", "objective", "additionalObjectives"},
           Json::Parse(R"([{"metricName": "loss", "type": "minimize"}])").value());
  SetField(&wanted, {"spec", "objective", "constraints"},
           Json::Parse(R"([{"metricName": "memory", "max": 10}])").value());
  Submit(wanted);
  // accuracy, loss, memory; the best accuracy breaks the constraint, the last is beaten in both.
  std::vector<std::string> names;
  for (const char* const output :
       {"accuracy=0.9 loss=5 memory=10", "accuracy=0.95 loss=1 memory=11",
        "accuracy=0.5 loss=1 memory=2", "accuracy=0.4 loss=2 memory=1"}) {
    names.push_back(Active()[0]);
    MakePod(names.back(), output);
    clock_.Advance(absl::Seconds(1));
    EndJob(names.back());
  }
  const Json experiment = Read(Experiments(), "random");
  EXPECT_EQ(StringField(experiment, {"status", "currentOptimalTrial", "bestTrialName"}), names[0]);
  std::set<std::string> front;
  for (const Json& name : ListField(experiment, {"status", "paretoTrialList"}))
    front.insert(name.AsString().value_or(""));
  EXPECT_EQ(front, (std::set<std::string>{names[0], names[2]}));
}

TEST_F(TuningTest, AnotherProcessGoesOnWithTheSameTrials) {
  Submit(Yaml(kExperiment));
  std::set<std::string> whole, restarted;
  while (!Active().empty()) Succeed(Active()[0], 0.5);
  for (const ObjectPtr& trial : List(Trials()))
    whole.insert(FindField(*trial, {"spec", "parameterAssignments"})->Dump());
  ASSERT_TRUE(store_->Delete(Experiments(), {"default", "random"}, {}).ok());
  tuning_->Settle();
  Submit(Yaml(kExperiment));
  while (!Active().empty()) {
    StartAnew();
    tuning_->Settle();
    Succeed(Active()[0], 0.5);
  }
  for (const ObjectPtr& trial : List(Trials()))
    restarted.insert(FindField(*trial, {"spec", "parameterAssignments"})->Dump());
  EXPECT_EQ(whole, restarted);
}

TEST_F(TuningTest, ALargerCountLetsItGoOnWhereThePolicySaysSo) {
  Json experiment = Yaml(kExperiment);
  SetField(&experiment, {"spec", "resumePolicy"}, "LongRunning");
  Submit(experiment);
  while (!Active().empty()) Succeed(Active()[0], 0.5);
  const auto more = [&] {
    return store_
        ->Patch(Experiments(), {"default", "random"}, PatchKind::kMerge,
                Json::Parse(R"({"spec":{"maxTrialCount":7}})").value(), {})
        .status();
  };
  ASSERT_TRUE(more().ok());
  tuning_->Settle();
  EXPECT_THAT(Active(), SizeIs(2));
  while (!Active().empty()) Succeed(Active()[0], 0.5);
  EXPECT_EQ(Count("trialsSucceeded"), 7);
  EXPECT_EQ(LastCondition(Read(Experiments(), "random")), "ExperimentMaxTrialsReached");
  // Nothing but counts may change.
  const Status other =
      store_
          ->Patch(Experiments(), {"default", "random"}, PatchKind::kMerge,
                  Json::Parse(R"({"spec":{"algorithm":{"algorithmName":"tpe"}}})").value(), {})
          .status();
  EXPECT_THAT(std::string(other.message()), HasSubstr("are editable"));
}

TEST_F(TuningTest, TemplatesOfVersionAlpha) {
  Json experiment = Yaml(kExperiment);
  experiment.Set("apiVersion", "kubeflow.org/v1alpha3");
  SetField(
      &experiment, {"spec", "parameters"},
      Yaml("- {name: --num-layers, parameterType: int, feasibleSpace: {min: \"2\", max: \"5\"}}"));
  SetField(&experiment, {"spec", "trialTemplate"}, Yaml(R"yaml(
goTemplate:
  rawTemplate: |-
    apiVersion: batch/v1
    kind: Job
    metadata:
      name: {{.Trial}}
      namespace: {{.NameSpace}}
    spec:
      template:
        spec:
          containers:
          - name: {{.Trial}}
            image: mnist:1
            command:
            - "python3"
            {{- with .HyperParameters}}
            {{- range .}}
            - "{{.Name}}={{.Value}}"
            {{- end}}
            {{- end}}
          restartPolicy: Never
)yaml"));
  Submit(experiment);
  ASSERT_THAT(List(BatchJobs()), SizeIs(2));
  const Json job = *List(BatchJobs())[0];
  const Json& container = ListField(job, {"spec", "template", "spec", "containers"})[0];
  EXPECT_EQ(StringField(container, {"name"}), NameOf(job));
  EXPECT_THAT(ListField(container, {"command"})[1].AsString().value(), HasSubstr("--num-layers="));
}

TEST_F(TuningTest, FilesAndEventsArePrintedByTheContainer) {
  Json experiment = Yaml(kExperiment);
  SetField(
      &experiment, {"spec", "metricsCollectorSpec"},
      Yaml("{collector: {kind: File}, source: {fileSystemPath: {path: /m/log.json, kind: File, "
           "format: JSON}}}"));
  Submit(experiment);
  const Json job = *List(BatchJobs())[0];
  const Json& container = ListField(job, {"spec", "template", "spec", "containers"})[0];
  EXPECT_EQ(ListField(container, {"command"})[0].AsString().value(), "sh");
  const std::string trial = Active()[0];
  MakePod(trial,
          "accuracy=0.9 is not meant\n--- metrics of this trial ---\n"
          "{\"accuracy\": \"0.4\", \"loss\": 2}\n{\"accuracy\": 0.6}\n"
          "--- end of metrics ---\n");
  EndJob(trial);
  EXPECT_EQ(TrialView(Read(Trials(), trial)).Observed({.maximize = true, .metric = "accuracy"}),
            0.6);
}

TEST_F(TuningTest, EarlyStoppingEndsWhatLooksBad) {
  Json experiment = Yaml(kExperiment);
  SetField(
      &experiment, {"spec", "earlyStopping"},
      Yaml("{algorithmName: medianstop, algorithmSettings: [{name: min_trials_required, value: "
           "\"1\"}, {name: start_step, value: \"2\"}]}"));
  Submit(experiment);
  const std::string running = Active()[1];
  Succeed(Active()[0], 0.9);  // the mean of its first two values is 0.5
  MakePod(running, "accuracy=0.3\n");
  clock_.Advance(absl::Seconds(3));
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), running)).state(), TrialState::kRunning);
  outputs_[running + "-pod"] += "accuracy=0.4\n";
  clock_.Advance(absl::Seconds(3));
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), running)).state(), TrialState::kEarlyStopped);
  EXPECT_TRUE(Read(BatchJobs(), running).is_null());
  EXPECT_EQ(Count("trialsEarlyStopped"), 1);
}

TEST_F(TuningTest, AnyKindOfObjectRuns) {
  Json experiment = Yaml(kExperiment);
  SetField(&experiment, {"spec", "trialTemplate"}, Yaml(R"yaml(
trialParameters: [{name: lr, reference: lr}, {name: layers, reference: layers}]
successCondition: data.#(result=="good")#
failureCondition: data.#(result=="bad")#
trialSpec: {apiVersion: v1, kind: ConfigMap, data: {lr: "${trialParameters.lr}", n: "${trialParameters.layers}"}}
)yaml"));
  SetField(&experiment, {"spec", "metricsCollectorSpec"}, Yaml("{collector: {kind: Push}}"));
  Submit(experiment);
  const ResourceType& maps = *FindResource("", "configmaps");
  ASSERT_THAT(List(maps), SizeIs(2));
  const std::string trial = Active()[0];
  SetStatus(Trials(), trial, R"({"status":{"reported":[{"name":"accuracy","values":[0.8]}]}})");
  Json map = Read(maps, trial);
  SetField(&map, {"data", "result"}, "good");
  ASSERT_TRUE(store_->Update(maps, map, {}).ok());
  clock_.Advance(absl::Seconds(3));
  tuning_->Settle();
  EXPECT_EQ(TrialView(Read(Trials(), trial)).state(), TrialState::kSucceeded);
  EXPECT_TRUE(Read(maps, trial).is_null());
}

TEST_F(TuningTest, WhatMakesNoSenseIsRefusedInWords) {
  Json experiment = Yaml(kExperiment);
  SetField(&experiment, {"spec", "trialTemplate"}, Json());
  EXPECT_THAT(std::string(Refused(experiment).message()), HasSubstr("holds no template: write"));
  experiment = Yaml(kExperiment);
  SetField(&experiment, {"spec", "objective", "additionalMetricNames"}, "loss");
  EXPECT_THAT(std::string(Refused(experiment).message()),
              HasSubstr("additionalMetricNames:\n    - loss"));
  experiment = Yaml(kExperiment);
  SetField(&experiment, {"spec", "algorithm", "algorithmName"}, "magic");
  Submit(experiment);
  EXPECT_TRUE(IsConditionTrue(Read(Experiments(), "random"), "Failed"));
}

}  // namespace
}  // namespace weft::platform
