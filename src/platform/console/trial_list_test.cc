// SPDX-License-Identifier: Apache-2.0
#include "platform/console/trial_list.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::platform {
namespace {

constexpr char kObjects[] = R"yaml(
apiVersion: kubeflow.org/v1alpha3
kind: Experiment
metadata: {name: mnist-experiment}
spec:
  objective: {type: maximize, objectiveMetricName: Validation-accuracy, additionalMetricNames: [accuracy]}
  algorithm: {algorithmName: random}
  parameters:
  - {name: --lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.05"}}
  - {name: --optimizer, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}
  trialTemplate:
    goTemplate: {rawTemplate: "apiVersion: v1\nkind: Pod\nmetadata: {name: {{.Trial}}}\nspec: {}"}
---
apiVersion: kubeflow.org/v1beta1
kind: Trial
metadata: {name: mnist-experiment-a, labels: {katib.kubeflow.org/experiment: mnist-experiment}}
spec:
  runSpec: {apiVersion: batch/v1, kind: Job}
  parameterAssignments: [{name: --lr, value: "0.02"}, {name: --optimizer, value: sgd}]
status:
  conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]
  observation: {metrics: [{name: Validation-accuracy, min: "0.1", max: "0.96", latest: "0.5"},
                          {name: accuracy, min: "0.2", max: "0.99", latest: unavailable}]}
---
apiVersion: kubeflow.org/v1beta1
kind: Trial
metadata: {name: mnist-experiment-b, labels: {katib.kubeflow.org/experiment: mnist-experiment}}
spec: {runSpec: {apiVersion: batch/v1, kind: Job}, parameterAssignments: [{name: --lr, value: "0.03"}]}
---
apiVersion: kubeflow.org/v1beta1
kind: Trial
metadata: {name: mnist-experiment-c, labels: {katib.kubeflow.org/experiment: mnist-experiment}}
spec:
  runSpec: {apiVersion: batch/v1, kind: Job}
  parameterAssignments: [{name: --lr, value: "0.04"}, {name: --optimizer, value: adam}]
status:
  conditions: [{type: Succeeded, status: "True"}]
  observation: {metrics: [{name: Validation-accuracy, min: "0.1", max: "0.98", latest: "0.98"}]}
)yaml";

TEST(TrialListTest, ShowsTheBestFirst) {
  FakeClock clock;
  EmbeddedStore::Options options;
  options.clock = &clock;
  const auto store = EmbeddedStore::Open(std::move(options)).value();
  const std::vector<Json> objects = ParseYaml(kObjects, "test").value();
  for (const Json& object : objects) {
    const ResourceType& type = *FindKind("kubeflow.org", StringField(object, {"kind"}));
    const auto made = store->Create(type, "default", object, {});
    ASSERT_TRUE(made.ok()) << made.status();
    Json changed = **made;
    if (const Json* const status = object.Find("status")) changed.Set("status", *status);
    ASSERT_TRUE(store->Update(type, changed, {"status"}).ok());
  }
  std::string out;
  Console console;
  console.store = store.get();
  console.clock = &clock;
  console.print = [&](absl::string_view text) { out.append(text.data(), text.size()); };
  ASSERT_TRUE(ShowTrials(console, "mnist-experiment", TableForm::kCsv).ok());
  EXPECT_EQ(out,
            "trialName,Validation-accuracy,accuracy,lr,optimizer,status\n"
            "mnist-experiment-c,0.98,,0.04,adam,Succeeded\n"
            "mnist-experiment-a,0.96,0.99,0.02,sgd,Succeeded\n"
            "mnist-experiment-b,,,0.03,,Pending\n");
  out.clear();
  ASSERT_TRUE(ShowTrials(console, "mnist-experiment", TableForm::kText).ok());
  EXPECT_THAT(out, testing::StartsWith("Experiment Name: mnist-experiment\n\ntrialName "));
  EXPECT_TRUE(IsObjectNotFound(ShowTrials(console, "other", TableForm::kText)));
  // One that is as good is the best where the experiment says so.
  Json equal = **store->Get(*FindKind("kubeflow.org", "Trial"), {"default", "mnist-experiment-a"});
  SetField(&equal, {"status", "observation", "metrics"},
           ParseYaml("[{name: Validation-accuracy, max: '0.98'}]", "test").value()[0]);
  ASSERT_TRUE(store->Update(*FindKind("kubeflow.org", "Trial"), equal, {"status"}).ok());
  for (const char* best : {"mnist-experiment-a", "mnist-experiment-c"}) {
    Json found =
        **store->Get(*FindKind("kubeflow.org", "Experiment"), {"default", "mnist-experiment"});
    SetField(&found, {"status", "currentOptimalTrial", "bestTrialName"}, best);
    ASSERT_TRUE(store->Update(*FindKind("kubeflow.org", "Experiment"), found, {"status"}).ok());
    out.clear();
    ASSERT_TRUE(ShowTrials(console, "mnist-experiment", TableForm::kCsv).ok());
    EXPECT_THAT(out, testing::HasSubstr(absl::StrCat("status\n", best, ",0.98")));
  }
}

}  // namespace
}  // namespace weft::platform
