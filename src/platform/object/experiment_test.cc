// SPDX-License-Identifier: Apache-2.0
#include "platform/object/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/go_template.h"
#include "platform/object/trial_template.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Katib's own example of early stopping, shortened.
constexpr char kExample[] = R"yaml(
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {namespace: kubeflow, name: median-stop}
spec:
  objective:
    type: maximize
    goal: 0.99
    objectiveMetricName: Validation-accuracy
    additionalMetricNames: [Train-accuracy]
  algorithm: {algorithmName: random}
  earlyStopping:
    algorithmName: medianstop
    algorithmSettings: [{name: min_trials_required, value: "1"}, {name: start_step, value: "2"}]
  parallelTrialCount: 2
  maxTrialCount: 15
  maxFailedTrialCount: 3
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.5", distribution: logUniform}}
  - {name: num-layers, parameterType: int, feasibleSpace: {min: "2", max: "5"}}
  - {name: batch, parameterType: discrete, feasibleSpace: {list: ["32", "64"]}}
  - {name: optimizer, parameterType: categorical, feasibleSpace: {list: [sgd, adam, ftrl]}}
  trialTemplate:
    primaryContainerName: training-container
    trialParameters:
    - {name: learningRate, description: Learning rate, reference: lr}
    - {name: numberLayers, description: Layers, reference: num-layers}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
            - name: training-container
              image: ghcr.io/kubeflow/katib/mxnet-mnist
              command: ["python3", "mnist.py", "--lr=${trialParameters.learningRate}", "--n=${trialParameters.numberLayers}"]
            restartPolicy: Never
)yaml";

Json ReadText(absl::string_view text) { return ParseYaml(text, "e.yaml").value()[0]; }

std::string Wrong(const Json& object) {
  Problems problems("e.yaml");
  ParseExperiment(object, &problems);
  return std::string(problems.ToStatus().message());
}

TEST(ExperimentTest, KatibsExample) {
  Problems problems("e.yaml");
  const Experiment experiment = ParseExperiment(ReadText(kExample), &problems);
  ASSERT_TRUE(problems.empty()) << problems.ToStatus();
  EXPECT_EQ(experiment.name, "median-stop");
  EXPECT_TRUE(experiment.objective.maximize);
  EXPECT_EQ(experiment.objective.goal, 0.99);
  EXPECT_THAT(experiment.objective.Metrics(), ElementsAre("Validation-accuracy", "Train-accuracy"));
  EXPECT_EQ(experiment.objective.StrategyOf("Train-accuracy"), MetricStrategy::kMax);
  ASSERT_EQ(experiment.parameters.size(), 4);
  EXPECT_TRUE(experiment.parameters[0].is_logarithmic);
  EXPECT_EQ(experiment.parameters[1].max, 5);
  EXPECT_THAT(experiment.parameters[2].list, ElementsAre("32", "64"));
  EXPECT_EQ(experiment.early_stopping->settings[1].second, "2");
  EXPECT_EQ(experiment.trial_template.success_condition,
            R"(status.conditions.#(type=="Complete")#|#(status=="True")#)");
  EXPECT_EQ(experiment.max_trials, 15);
}

TEST(ExperimentTest, FaultsAreAnsweredWithHowToWriteIt) {
  const auto with = [](FieldPath path, Json value) {
    Json object = ReadText(kExample);
    SetField(&object, path, std::move(value));
    return Wrong(object);
  };
  EXPECT_THAT(with({"spec", "trialTemplate"}, Json()), HasSubstr("holds no template: write"));
  EXPECT_THAT(with({"spec", "objective", "additionalMetricNames"}, "accuracy"),
              HasSubstr("additionalMetricNames:\n    - accuracy"));
  EXPECT_THAT(with({"spec", "objective", "type"}, "maximise"),
              HasSubstr("Did you mean 'maximize'"));
  EXPECT_THAT(with({"spec", "maxTrialCount"}, 1), HasSubstr("less than or equal to spec.maxTrial"));
  EXPECT_THAT(with({"spec", "nasConfig"}, Json::MakeObject()), HasSubstr("not architectures"));
  EXPECT_THAT(with({"metadata", "name"}, std::string(41, 'a')), HasSubstr("1 to 40"));
  EXPECT_THAT(
      with({"spec", "parameters"},
           ReadText("[{name: o, parameterType: categorical, feasibleSpace: {list: [sgd adam]}}]")),
      HasSubstr("a dash is missing"));
  EXPECT_THAT(
      with({"spec", "parameters"},
           ReadText("[{name: n, parameterType: int, feasibleSpace: {min: \"5\", max: \"2.5\"}}]")),
      testing::AllOf(HasSubstr("min is larger than max"), HasSubstr("whole numbers")));
  EXPECT_THAT(with({"spec", "trialTemplate", "trialParameters"},
                   ReadText("[{name: learningRate, reference: lr}]")),
              HasSubstr("${trialParameters.numberLayers}"));
  EXPECT_THAT(with({"spec", "trialTemplate", "trialSpec", "kind"}, "Rocket"),
              HasSubstr("successCondition and failureCondition must be specified"));
}

TEST(ExperimentTest, ParametersMayDependOnOthersBeforeThem) {
  Json object = ReadText(kExample);
  Json momentum = ReadText(
      "{name: momentum, parameterType: double, feasibleSpace: {min: \"0\", max: "
      "\"1\"}, condition: {parameter: optimizer, values: [sgd]}}");
  object.FindMutable("spec")->FindMutable("parameters")->Append(momentum);
  EXPECT_EQ(Wrong(object), "");
  SetField(&momentum, {"condition", "values"}, Json(Json::Array{"magic"}));
  SetField(&momentum, {"name"}, "other");
  object.FindMutable("spec")->FindMutable("parameters")->Append(momentum);
  EXPECT_THAT(Wrong(object), HasSubstr("'magic' is no value of optimizer"));
}

TEST(TrialTemplateTest, PlaceholdersAndMetadata) {
  TrialTemplate t;
  t.spec = ReadText(
      "{apiVersion: v1, kind: Pod, metadata: {labels: {team: vision}}, spec: {containers: "
      "[{name: main, image: i, command: ['${trialParameters.lr}x', "
      "'${trialParameters.me}-${trialParameters.team}']}]}}");
  t.parameters = {{"lr", "lr"}, {"me", "${trialSpec.Name}"}, {"team", "${trialSpec.Labels[team]}"}};
  const auto run = MakeRunObject(t, "", {"e", "e-1", "space"}, {{"lr", "0.5"}});
  ASSERT_TRUE(run.ok()) << run.status();
  const Json& container = ListField(*run, {"spec", "containers"})[0];
  EXPECT_EQ(container.Find("command")->Dump(), R"(["0.5x","e-1-vision"])");
  EXPECT_EQ(StringField(*run, {"metadata", "labels", kTrialLabel}), "e-1");
  EXPECT_EQ(NamespaceOf(*run), "space");
}

TEST(GoTemplateTest, ActionsOfTheOldTemplates) {
  const Json data = ReadText(
      "{Trial: t1, Empty: '', HyperParameters: [{Name: --lr, Value: '0.1'}, {Name: "
      "--n, Value: '3'}]}");
  const auto render = [&](absl::string_view text) {
    const auto rendered = RenderGoTemplate(text, data);
    return rendered.ok() ? *rendered : std::string(rendered.status().message());
  };
  EXPECT_EQ(render("name: {{.Trial}}\n{{- with .HyperParameters}}\n{{- range .}}\n- "
                   "\"{{.Name}}={{.Value}}\"\n{{- end}}\n{{- end}}\nend"),
            "name: t1\n- \"--lr=0.1\"\n- \"--n=3\"\nend");
  EXPECT_EQ(render("{{if .Empty}}a{{else}}b{{end}}{{/* c */}}{{ .Trial -}}  !"), "bt1!");
  EXPECT_THAT(render("{{.None}}"), HasSubstr("there is no 'None'"));
  EXPECT_THAT(render("{{range .HyperParameters}}"), HasSubstr("without {{end}}"));
  EXPECT_THAT(render("{{printf .Trial}}"), HasSubstr("not understood"));
  EXPECT_THAT(render("{{.Trial"), HasSubstr("without '}}'"));
}

}  // namespace
}  // namespace weft::platform
