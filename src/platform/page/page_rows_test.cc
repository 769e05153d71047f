// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json RowOf(const char* kind, const char* object) {
  return FindRowKind(kind)->row(Json::Parse(object).value());
}

TEST(PageRowsTest, ATrialTellsItsValuesMetricsAndCurve) {
  const Json row = RowOf("trials", R"({"kind": "Trial",
    "metadata": {"name": "t", "namespace": "n", "labels": {"weft.dev/trial-number": "7",
                 "katib.kubeflow.org/experiment": "e"}},
    "spec": {"parameterAssignments": [{"name": "lr", "value": "0.01"}, {"name": "o", "value": "sgd"}],
             "runSpec": {"env": "SECRET"}},
    "status": {"completionTime": "2026-01-01T00:00:00Z",
      "conditions": [{"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"}],
      "observation": {"metrics": [{"name": "loss", "min": "0.5", "max": "1", "latest": "unavailable"}]},
      "reported": [{"name": "loss", "values": [1, 0.5]}]}})");
  EXPECT_EQ(row.Dump(),
            R"({"key":"Trial/n/t","kind":"Trial","namespace":"n","name":"t","experiment":"e",)"
            R"("number":7,"state":"Succeeded","values":{"lr":0.01,"o":"sgd"},)"
            R"("metrics":{"loss":{"min":0.5,"max":1.0}},"curves":{"loss":[[1,1.0],[2,0.5]]},)"
            R"("ended":1767225600})");
}

TEST(PageRowsTest, ALongCurveIsThinnedAndKeepsItsEnds) {
  Json values = Json::MakeArray();
  for (int i = 0; i < 200; ++i) values.Append(i);
  Json metric;
  metric.Set("name", "a");
  metric.Set("values", std::move(values));
  Json trial;
  SetField(&trial, {"status", "reported"}, Json(Json::Array{std::move(metric)}));
  const Json row = FindRowKind("trials")->row(trial);
  const Json* const curve = FindField(row, {"curves", "a"});
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->size(), 48u);
  EXPECT_EQ(curve->items().front().Dump(), "[1,0.0]");
  EXPECT_EQ(curve->items().back().Dump(), "[200,199.0]");
}

TEST(PageRowsTest, APodTellsWhyItWaitsAndNotItsEnvironment) {
  const Json row = RowOf("pods", R"({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": "hunter2"}],
             "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2"}}}]},
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
               "message": "0/1 nodes are available"}]}})");
  EXPECT_EQ(StringField(row, {"why"}), "0/1 nodes are available");
  EXPECT_EQ(IntField(row, {"gpuCount"}), 2);
  EXPECT_EQ(IntField(row, {"memory"}), int64_t{1} << 30);
  EXPECT_THAT(row.Dump(), Not(HasSubstr("hunter2")));
}

TEST(PageRowsTest, WhatMakesNoSenseIsLeftOut) {
  for (const char* kind : {"jobs", "pods", "nodes", "experiments", "trials", "events"}) {
    for (const char* object :
         {"{}", "[]", "null", R"({"metadata": 1, "spec": [], "status": "x"})",
          R"({"metadata": {"name": {}, "ownerReferences": [3]}, "spec": {"parameters": [1, {}],
              "containers": [{}, 1], "parameterAssignments": {"a": 1}},
              "status": {"conditions": [1, {"type": []}], "reported": [{"values": ["x", {}]}],
              "observation": {"metrics": [7]}, "currentOptimalTrial": [], "allocatable": 4}})"}) {
      EXPECT_TRUE(RowOf(kind, object).is_object()) << kind << object;
    }
  }
  EXPECT_EQ(FindRowKind("secrets"), nullptr);
}

}  // namespace
}  // namespace weft::platform
