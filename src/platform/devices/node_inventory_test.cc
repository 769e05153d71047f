// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/node_inventory.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "platform/devices/resource_slices.h"
#include "platform/object/fields.h"
#include "platform/resources/node_description.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/embedded_store.h"
#include "platform/store/passing_store.h"

namespace weft::platform {
namespace {

using testing::HasSubstr;

Machine MachineWith(int gpus) {
  Machine machine;
  machine.sockets = 2;
  for (int i = 0; i < gpus; ++i) {
    DriverGpu gpu;
    gpu.gpu.uuid = absl::StrCat("GPU-", i);
    gpu.gpu.model = "T4";
    gpu.gpu.memory = int64_t{16} << 30;
    machine.gpus.push_back(gpu);
  }
  machine.rdma = {{"mlx5_0", "InfiniBand", 1, 1, "", 0, {}}};
  return machine;
}

class NodeInventoryTest : public testing::Test {
 protected:
  NodeInventoryTest() {
    EmbeddedStore::Options options;
    options.clock = &clock_;
    store_ = EmbeddedStore::Open(std::move(options)).value();
    Json node;
    node.Set("apiVersion", "v1");
    node.Set("kind", "Node");
    SetField(&node, {"metadata", "name"}, "n");
    SetField(&node, {"metadata", "labels", "theirs"}, "kept");
    EXPECT_TRUE(store_->Create(Nodes(), "", node, WriteOptions()).ok());
  }
  NodeInventory MakeInventory(const std::string& machine, ObjectStore* store = nullptr) {
    NodeInventory::Options options;
    options.store = store == nullptr ? store_.get() : store;
    options.clock = &clock_;
    options.node = "n";
    options.machine = machine;
    options.host = "host-" + machine;
    return NodeInventory(std::move(options));
  }
  Json Node() { return **store_->Get(Nodes(), {"", "n"}); }
  std::string Label(const char* name) { return StringField(Node(), {"metadata", "labels", name}); }

  FakeClock clock_;
  std::unique_ptr<EmbeddedStore> store_;
};

TEST_F(NodeInventoryTest, SaysWhatThereIsAndTakesItBack) {
  NodeInventory inventory = MakeInventory("a");
  Machine machine = MachineWith(2);
  ASSERT_TRUE(inventory.Step(machine).ok());
  EXPECT_TRUE(inventory.is_ours());
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("alpha.kubernetes.io/infiniBand"), "true");
  EXPECT_EQ(Label("theirs"), "kept");
  // A kubelet counts devices itself.
  EXPECT_EQ(FindField(Node(), {"status", "allocatable"}), nullptr);
  const std::string revision = RevisionOf(Node());
  ASSERT_TRUE(inventory.Step(machine).ok());
  EXPECT_EQ(RevisionOf(Node()), revision);

  machine.gpus[1].gpu.is_healthy = false;
  machine.rdma.clear();
  ASSERT_TRUE(inventory.Step(machine).ok());
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "1");
  EXPECT_EQ(Label("alpha.kubernetes.io/infiniBand"), "");
  EXPECT_THAT(StringField(Node(), {"metadata", "annotations", kGpusAnnotation}),
              HasSubstr("\"health\":\"Unhealthy\""));
  // Signs of life.
  const std::string claim = StringField(Node(), {"metadata", "annotations", kAgentAnnotation});
  clock_.Advance(absl::Minutes(2));
  ASSERT_TRUE(inventory.Step(machine).ok());
  EXPECT_NE(StringField(Node(), {"metadata", "annotations", kAgentAnnotation}), claim);
  inventory.Leave();
  EXPECT_EQ(FindField(Node(), {"metadata", "annotations", kAgentAnnotation}), nullptr);
}

TEST_F(NodeInventoryTest, WithoutAKubeletItCountsItself) {
  NodeInventory::Options options;
  options.store = store_.get();
  options.clock = &clock_;
  options.node = "n";
  options.machine = "a";
  options.tells_amounts = true;
  NodeInventory inventory(std::move(options));
  ASSERT_TRUE(inventory.Step(MachineWith(3)).ok());
  EXPECT_EQ(StringField(Node(), {"status", "allocatable", "nvidia.com/gpu"}), "3");
  EXPECT_EQ(StringField(Node(), {"status", "capacity", "alpha.kubernetes.io/nvidia-gpu"}), "3");
}

TEST_F(NodeInventoryTest, TheSecondAgentLeavesTheNodeAlone) {
  NodeInventory first = MakeInventory("a");
  ASSERT_TRUE(first.Step(MachineWith(2)).ok());
  NodeInventory second = MakeInventory("b");
  ASSERT_TRUE(second.Step(MachineWith(8)).ok());
  EXPECT_FALSE(second.is_ours());
  clock_.Advance(absl::Minutes(1));
  ASSERT_TRUE(first.Step(MachineWith(2)).ok());
  const Status refused = second.Step(MachineWith(8));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("host-a, which is alive"));
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
}

TEST_F(NodeInventoryTest, ADeadAgentHasAnHeir) {
  NodeInventory first = MakeInventory("a");
  ASSERT_TRUE(first.Step(MachineWith(2)).ok());
  // The same machine at once.
  NodeInventory again = MakeInventory("a");
  ASSERT_TRUE(again.Step(MachineWith(3)).ok());
  EXPECT_TRUE(again.is_ours());
  // Another one when nobody has said anything for a while.
  NodeInventory other = MakeInventory("b");
  ASSERT_TRUE(other.Step(MachineWith(4)).ok());
  EXPECT_FALSE(other.is_ours());
  clock_.Advance(absl::Minutes(4));
  ASSERT_TRUE(other.Step(MachineWith(4)).ok());
  EXPECT_TRUE(other.is_ours());
  // Who was stopped for so long sees that it has lost the node.
  EXPECT_EQ(again.Step(MachineWith(3)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "4");
}

TEST_F(NodeInventoryTest, ThereMayBeNoNodeYet) {
  ASSERT_TRUE(store_->Delete(Nodes(), {"", "n"}, DeleteOptions()).ok());
  NodeInventory inventory = MakeInventory("a");
  EXPECT_TRUE(IsObjectNotFound(inventory.Step(MachineWith(1))));
}

// As NodeRestriction refuses a node's own identity.
class RestrictingStore : public PassingStore {
 public:
  using PassingStore::PassingStore;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override {
    const Json* const labels = FindField(patch, {"metadata", "labels"});
    if (labels != nullptr && labels->Find("alpha.kubernetes.io/infiniBand") != nullptr)
      return ObjectForbidden(type, name.name, "is not allowed to modify labels");
    return PassingStore::Patch(type, name, kind, patch, options);
  }
};

TEST_F(NodeInventoryTest, WhatItMayNotSayIsLeftOut) {
  RestrictingStore store(store_.get());
  NodeInventory inventory = MakeInventory("a", &store);
  ASSERT_TRUE(inventory.Step(MachineWith(2)).ok());
  EXPECT_EQ(Label("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(Label("alpha.kubernetes.io/infiniBand"), "");
}

TEST(ResourceSlicesTest, WhatClaimsChooseFrom) {
  Machine machine = MachineWith(2);
  machine.gpus[1].gpu.is_healthy = false;
  const Json devices = DescribeDevices(machine, "v1");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(StringField(devices.items()[0], {"name"}), "gpu-0");
  EXPECT_EQ(StringField(devices.items()[0], {"attributes", "model", "string"}), "T4");
  EXPECT_EQ(StringField(devices.items()[0], {"capacity", "memory", "value"}), "16Gi");
  EXPECT_EQ(StringField(devices.items()[1], {"name"}), "rdma-mlx5-0");
  const Json old = DescribeDevices(machine, "v1beta1");
  EXPECT_EQ(StringField(old.items()[0], {"basic", "attributes", "uuid", "string"}), "GPU-0");
  SlicePublisher none(nullptr, "n", {"v1alpha3"});
  EXPECT_FALSE(none.is_possible());
  SlicePublisher best(nullptr, "n", {"v1beta1", "v1beta2"});
  EXPECT_EQ(best.version(), "v1beta2");
}

}  // namespace
}  // namespace weft::platform
