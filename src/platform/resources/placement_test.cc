// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/placement.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/yaml.h"
#include "platform/resources/fit.h"
#include "platform/resources/topology.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PlacementTest : public testing::Test {
 protected:
  int AddNode(const std::string& yaml) {
    const StatusOr<std::vector<Json>> json = ParseYaml(yaml, "node");
    if (!json.ok()) ADD_FAILURE() << json.status();
    const StatusOr<NodeDescription> node = ReadNode(json->front(), &names_);
    if (!node.ok()) ADD_FAILURE() << node.status();
    return state_.SetNode(std::make_shared<NodeDescription>(*node));
  }
  int AddNode(const std::string& name, const std::string& allocatable, const std::string& labels,
              const std::string& spec = "{}") {
    return AddNode("metadata: {name: " + name + ", labels: {" + labels + "}}\nspec: " + spec +
                   "\nstatus: {allocatable: {pods: 10, " + allocatable + "}}");
  }
  StatusOr<std::shared_ptr<const PodNeeds>> TryPod(const std::string& requests,
                                                   const std::string& spec = "",
                                                   const std::string& metadata = "") {
    const StatusOr<std::vector<Json>> json =
        ParseYaml("metadata: {namespace: default, name: p" + metadata +
                      "}\nspec: {containers: [{name: c, resources: {requests: {" + requests +
                      "}}}]" + spec + "}",
                  "pod");
    if (!json.ok()) return json.status();
    return ReadPodNeeds(json->front(), &names_);
  }
  std::shared_ptr<const PodNeeds> Pod(const std::string& requests, const std::string& spec = "",
                                      const std::string& metadata = "") {
    auto pod = TryPod(requests, spec, metadata);
    if (!pod.ok()) ADD_FAILURE() << pod.status();
    return pod.ok() ? *pod : std::make_shared<PodNeeds>();
  }
  // The name of the node, which the pod occupies; "" when there is none.
  std::string PutOn(const std::shared_ptr<const PodNeeds>& pod,
                    const std::string& policy = "packing") {
    auto placement = MakePlacement(policy);
    if (!placement.ok()) return std::string(placement.status().message());
    last_ = FindPlace(state_, *pod, {}, {placement->get(), 0});
    if (last_.node < 0) return "";
    state_.Occupy(pod, last_);
    return state_.node(last_.node).description->name;
  }
  std::vector<std::string> WhyNot(int node, const PodNeeds& pod) {
    Misfit misfit = CheckNode(state_.node(node), pod);
    if (misfit == Misfit::kNone) misfit = TopologyCheck(state_, pod).Check(node);
    return DescribeMisfit(misfit, state_.node(node), pod, names_);
  }

  ResourceNames names_;
  ClusterState state_;
  Place last_;
};

TEST_F(PlacementTest, RequestsAreCountedAndGivenBack) {
  const int node = AddNode("a", "cpu: 2, memory: 4Gi", "");
  const auto pod = Pod("cpu: 1500m, memory: 1Gi");
  EXPECT_EQ(PutOn(pod), "a");
  EXPECT_EQ(PutOn(pod), "");
  EXPECT_THAT(WhyNot(node, *pod), ElementsAre("Insufficient cpu"));
  EXPECT_THAT(WhyNot(node, *Pod("cpu: 1, memory: 9Gi")),
              ElementsAre("Insufficient cpu", "Insufficient memory"));
  EXPECT_THAT(WhyNot(node, *Pod("rdma/hca: 1")), ElementsAre("Insufficient rdma/hca"));
  Place first;
  first.node = node;
  state_.Vacate(pod, first);
  EXPECT_EQ(PutOn(pod), "a");
}

TEST_F(PlacementTest, InitContainersAndSidecarsCountAsKubeletsReckonThem) {
  const auto json = ParseYaml(
      "metadata: {name: p}\nspec:\n  initContainers:\n"
      "  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}\n"
      "  - {name: i, resources: {requests: {cpu: 4}}}\n"
      "  containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {requests: "
      "{cpu: 500m}, limits: {cpu: 2}}}]\n",
      "pod");
  ASSERT_TRUE(json.ok());
  const auto needs = ReadPodNeeds(json->front(), &names_);
  ASSERT_TRUE(needs.ok()) << needs.status();
  // The init container beside the sidecar; the others need 1 + 1 + 0.5.
  EXPECT_EQ(AmountOf((*needs)->amounts, kCpu), 5000);
}

TEST_F(PlacementTest, SelectorsAffinityTaintsAndCordonsHold) {
  const int a = AddNode("a", "cpu: 4", "disk: hdd, size: '3'");
  const int b = AddNode("b", "cpu: 4", "disk: ssd, size: '7'",
                        "{taints: [{key: gpu, value: 'yes', effect: NoSchedule}]}");
  const int c = AddNode("c", "cpu: 4", "", "{unschedulable: true}");
  const auto ssd = Pod("cpu: 1", ", nodeSelector: {disk: ssd}");
  EXPECT_EQ(PutOn(ssd), "");
  EXPECT_THAT(WhyNot(a, *ssd), ElementsAre("node(s) didn't match Pod's node affinity/selector"));
  EXPECT_THAT(WhyNot(b, *ssd), ElementsAre("node(s) had untolerated taint {gpu: yes}"));
  EXPECT_THAT(WhyNot(c, *ssd), ElementsAre("node(s) were unschedulable"));
  EXPECT_EQ(PutOn(Pod("cpu: 1",
                      ", nodeSelector: {disk: ssd}, tolerations: [{key: gpu, operator: "
                      "Equal, value: 'yes'}]")),
            "b");
  EXPECT_EQ(PutOn(Pod("cpu: 1", ", nodeSelector: {disk: ssd}, tolerations: [{operater: Exists}]")),
            "");
  const std::string affinity =
      ", tolerations: [{operator: Exists}], affinity: {nodeAffinity: "
      "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
      "[{key: size, operator: Gt, values: ['5']}]}]}}}";
  EXPECT_EQ(PutOn(Pod("cpu: 1", affinity)), "b");
}

TEST_F(PlacementTest, PodsKeepTogetherApartAndSpread) {
  AddNode("a", "cpu: 8", "zone: x");
  AddNode("b", "cpu: 8", "zone: x");
  AddNode("c", "cpu: 8", "zone: y");
  const std::string db = ", labels: {app: db}";
  const std::string term = "{labelSelector: {matchLabels: {app: db}}, topologyKey: zone}";
  const std::string required = "requiredDuringSchedulingIgnoredDuringExecution";
  const auto apart =
      Pod("cpu: 1", ", affinity: {podAntiAffinity: {" + required + ": [" + term + "]}}", db);
  EXPECT_EQ(PutOn(apart), "a");
  EXPECT_EQ(PutOn(apart), "c");
  EXPECT_EQ(PutOn(apart), "");
  EXPECT_THAT(WhyNot(1, *apart), ElementsAre("node(s) didn't match pod anti-affinity rules"));
  // It keeps others away too, who ask for nothing themselves.
  EXPECT_EQ(PutOn(Pod("cpu: 1", "", db)), "");
  const auto together = Pod("cpu: 1", ", affinity: {podAffinity: {" + required +
                                          ": [{labelSelector: {matchLabels: {app: db}}, "
                                          "topologyKey: zone}]}}");
  EXPECT_NE(PutOn(together), "");
  const auto lonely = Pod("cpu: 1", ", affinity: {podAffinity: {" + required +
                                        ": [{labelSelector: {matchLabels: {app: web}}, "
                                        "topologyKey: zone}]}}");
  EXPECT_EQ(PutOn(lonely), "");
  const auto spread = Pod("cpu: 1",
                          ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, "
                          "whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: "
                          "w}}}]",
                          ", labels: {app: w}");
  std::vector<std::string> zones;
  for (int i = 0; i < 4; ++i) {
    PutOn(spread);
    zones.push_back(state_.node(last_.node).description->labels.at("zone"));
  }
  EXPECT_EQ(std::count(zones.begin(), zones.end(), "x"), 2);
}

TEST_F(PlacementTest, GpusGoByNumberByIndexAndByMemory) {
  AddNode(
      "metadata: {name: g, annotations: {weft.dev/gpus: '[{\"memory\": \"16Gi\", \"model\": "
      "\"T4\"}, {\"memory\": \"16Gi\", \"model\": \"T4\"}, {\"memory\": \"16Gi\", \"model\": "
      "\"T4\", \"health\": \"Unhealthy\"}, {\"memory\": \"40Gi\", \"model\": \"A100\"}]'}}\n"
      "status: {allocatable: {pods: 99, nvidia.com/gpu: 3}}");
  const auto share = Pod("weft.dev/gpu-memory: 6Gi");
  EXPECT_EQ(PutOn(share), "g");
  EXPECT_THAT(last_.gpus, ElementsAre(0));
  EXPECT_EQ(PutOn(share), "g");
  EXPECT_THAT(last_.gpus, ElementsAre(0));
  // 4Gi are left of it, so the next one opens another.
  EXPECT_EQ(PutOn(share), "g");
  EXPECT_THAT(last_.gpus, ElementsAre(1));
  EXPECT_EQ(PutOn(Pod("nvidia.com/gpu: 2")), "");
  EXPECT_EQ(PutOn(Pod("", "", ", annotations: {alpha.kubernetes.io/gpuset: '0'}")), "");
  EXPECT_EQ(PutOn(Pod("", "", ", annotations: {alpha.kubernetes.io/gpuset: '2'}")), "");
  EXPECT_EQ(PutOn(Pod("nvidia.com/gpu: 1", "", ", annotations: {weft.dev/gpu-model: T4}")), "");
  EXPECT_EQ(PutOn(Pod("", "", ", annotations: {alpha.kubernetes.io/gpuset: '3'}")), "g");
  EXPECT_EQ(PutOn(Pod("alpha.kubernetes.io/nvidia-gpu: 1")), "");
  EXPECT_EQ(PutOn(Pod("weft.dev/gpu-memory: 17Gi")), "");
  EXPECT_EQ(PutOn(Pod("aliyun.com/gpu-mem: 10")), "g");
  EXPECT_THAT(last_.gpus, ElementsAre(1));
}

TEST_F(PlacementTest, WhatMakesNoSenseIsTold) {
  const auto error = [&](const std::string& requests, const std::string& metadata = "") {
    const auto pod = TryPod(requests, "", metadata);
    return pod.ok() ? "" : std::string(pod.status().message());
  };
  EXPECT_THAT(error("nvidia.com/gpu: 500m"), HasSubstr("weft.dev/gpu-memory"));
  EXPECT_THAT(error("nvidia.com/gpu: 2", ", annotations: {alpha.kubernetes.io/gpuset: '0,1,3'}"),
              HasSubstr("names 3 GPUs, the containers ask for 2"));
  for (const char* set : {"0,0", "-1", "0,,1", "x", "99999"}) {
    EXPECT_THAT(
        error("cpu: 1", std::string(", annotations: {alpha.kubernetes.io/gpuset: '") + set + "'}"),
        HasSubstr("different numbers of GPUs are allowed"));
  }
  EXPECT_THAT(error("weft.dev/gpu-memory: 1Gi, aliyun.com/gpu-mem: 2"), HasSubstr("and as"));
  EXPECT_THAT(error("tencent.com/vcuda-core: 150"), HasSubstr("multiple of 100"));
  EXPECT_THAT(error("cpu: -1"), HasSubstr("cpu: holds"));
}

TEST_F(PlacementTest, PoliciesDiffer) {
  AddNode("a", "cpu: 64, nvidia.com/gpu: 4", "");
  AddNode("b", "cpu: 64, nvidia.com/gpu: 4", "");
  const auto one = Pod("cpu: 1, nvidia.com/gpu: 1");
  EXPECT_EQ(PutOn(one, "packing"), "a");
  EXPECT_EQ(PutOn(one, "packing"), "a");
  EXPECT_EQ(PutOn(one, "spreading"), "b");
  EXPECT_EQ(PutOn(one, "consolidation"), "a");  // which keeps b whole
  EXPECT_THAT(PutOn(one, "best"), HasSubstr("there are packing, spreading"));
}

TEST_F(PlacementTest, AGangIsPlacedWholeOrNotAtAll) {
  for (const char* name : {"a", "b", "c"}) AddNode(name, "cpu: 64, nvidia.com/gpu: 4", "");
  const auto one = Pod("nvidia.com/gpu: 1");
  PutOn(one, "packing");
  const auto consolidation = MakeConsolidation();
  std::vector<Place> places;
  const std::vector<std::shared_ptr<const PodNeeds>> eight(8, one);
  ASSERT_TRUE(PlaceGang(eight, {consolidation.get(), 0}, &state_, &places));
  // On the two nodes that are empty.
  for (const Place& place : places) EXPECT_NE(place.node, 0);
  const auto before = state_.free_whole_gpus();
  EXPECT_FALSE(PlaceGang(eight, {consolidation.get(), 0}, &state_, &places));
  EXPECT_TRUE(places.empty());
  EXPECT_EQ(state_.free_whole_gpus(), before);
}

TEST_F(PlacementTest, FragmentationKeepsWholeGpusForThoseWhoNeedThem) {
  AddNode("a", "cpu: 64, nvidia.com/gpu: 2", "");
  AddNode("b", "cpu: 64, nvidia.com/gpu: 2", "");
  const auto half = Pod("cpu: 1, nvidia.com/gpu: 1, nvidia.com/gpucores: 50");
  const auto two = Pod("cpu: 1, nvidia.com/gpu: 2");
  const auto policy = MakeFragmentation();
  policy->Expect({half, two, two});
  const PlaceOptions options = {policy.get(), 0};
  for (int i = 0; i < 4; ++i) {
    const Place place = FindPlace(state_, *half, {}, options);
    ASSERT_EQ(place.node, 0) << i;
    EXPECT_THAT(place.gpus, ElementsAre(i / 2));
    state_.Occupy(half, place);
  }
  EXPECT_EQ(FindPlace(state_, *two, {}, options).node, 1);
}

TEST_F(PlacementTest, NodesComeChangeAndGo) {
  const int a = AddNode("a", "cpu: 4, nvidia.com/gpu: 2", "");
  const auto pod = Pod("cpu: 3, nvidia.com/gpu: 1");
  EXPECT_EQ(PutOn(pod), "a");
  const Place place = last_;
  // It shrinks below what is used: nothing fits, and nothing breaks.
  AddNode("a", "cpu: 2, nvidia.com/gpu: 1", "");
  EXPECT_EQ(AmountOf(state_.node(a).free, kCpu), -1000);
  EXPECT_EQ(state_.free_whole_gpus(), 0);
  state_.RemoveNode("a");
  EXPECT_EQ(PutOn(pod), "");
  // Another node gets its number only when nobody is there any more.
  EXPECT_NE(AddNode("b", "cpu: 1", ""), a);
  // When it comes again, whoever is bound to it still is.
  EXPECT_EQ(AddNode("a", "cpu: 4, nvidia.com/gpu: 2", ""), a);
  EXPECT_EQ(AmountOf(state_.node(a).free, kCpu), 1000);
  state_.RemoveNode("a");
  state_.Vacate(pod, place);
  EXPECT_EQ(AddNode("c", "cpu: 4, nvidia.com/gpu: 1", ""), a);
  EXPECT_EQ(PutOn(pod), "c");
  EXPECT_EQ(state_.gpu_thousandths(), 1000);
  EXPECT_EQ(state_.free_gpu_thousandths(), 0);
}

}  // namespace
}  // namespace weft::platform
