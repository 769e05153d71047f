// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/plugin_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr int64_t kGiB = int64_t{1} << 30;

DriverGpu MakeGpu(int index, int island) {
  DriverGpu gpu;
  gpu.gpu.uuid = absl::StrCat("GPU-", index);
  gpu.gpu.memory = 4 * kGiB;
  gpu.gpu.island = island;
  gpu.gpu.numa_node = island;
  gpu.minor = index;
  return gpu;
}

// Four GPUs on two islands, and an adapter with a link and one without.
Machine TwoIslands() {
  Machine machine;
  for (int i = 0; i < 4; ++i) {
    machine.gpus.push_back(MakeGpu(i, i / 2));
    machine.driver_files.push_back(absl::StrCat("/dev/nvidia", i));
  }
  machine.driver_files.push_back("/dev/nvidiactl");
  machine.rdma = {
      {"mlx5_0", "InfiniBand", 1, 1, "", 0, {"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"}},
      {"mlx5_1", "InfiniBand", 1, 0, "", 1, {"/dev/infiniband/uverbs1"}}};
  return machine;
}

const PluginResource& Find(const std::vector<PluginResource>& all, const std::string& name) {
  static const PluginResource none;
  for (const PluginResource& resource : all) {
    if (resource.name == name) return resource;
  }
  return none;
}

std::vector<std::string> Paths(const std::vector<ContainerFiles>& files) {
  std::vector<std::string> paths;
  for (const ContainerFiles& file : files) paths.push_back(file.host_path);
  return paths;
}

TEST(PluginDevicesTest, EachGpuIsWholeOrInShares) {
  PluginOptions options;
  options.shared_gpus = {3};
  const auto all = PluginResourcesOf(TwoIslands(), options);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(Find(all, "nvidia.com/gpu").devices.size(), 3u);
  const PluginResource& shares = Find(all, "aliyun.com/gpu-mem");
  ASSERT_EQ(shares.devices.size(), 4u);
  EXPECT_EQ(shares.devices[2], (PluginDevice{"GPU-3/2", true, 1, "GPU-3"}));
  const PluginResource& adapters = Find(all, "weft.dev/rdma");
  ASSERT_EQ(adapters.devices.size(), 2u);
  EXPECT_TRUE(adapters.devices[0].is_healthy);
  EXPECT_FALSE(adapters.devices[1].is_healthy);
  EXPECT_THAT(PluginResourcesOf(Machine(), options), IsEmpty());
}

TEST(PluginDevicesTest, WhatAContainerGets) {
  PluginOptions options;
  options.host_root = "/host";
  options.driver_folder = "/opt/driver";
  const Machine machine = TwoIslands();
  const auto all = PluginResourcesOf(machine, options);
  const auto given =
      AllocateDevices(machine, options, Find(all, "nvidia.com/gpu"), {"GPU-2", "GPU-0"});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->variables.at("NVIDIA_VISIBLE_DEVICES"), "GPU-0,GPU-2");
  EXPECT_EQ(given->variables.at("CUDA_VISIBLE_DEVICES"), "GPU-0,GPU-2");
  EXPECT_THAT(Paths(given->device_files),
              ElementsAre("/host/dev/nvidia0", "/host/dev/nvidia2", "/host/dev/nvidiactl"));
  EXPECT_EQ(given->device_files[0].container_path, "/dev/nvidia0");
  EXPECT_THAT(Paths(given->mounts), ElementsAre("/opt/driver"));
  const auto link = AllocateDevices(machine, options, Find(all, "weft.dev/rdma"), {"mlx5_0"});
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_EQ(link->variables.at("WEFT_RDMA_ADAPTERS"), "mlx5_0");
  EXPECT_THAT(Paths(link->device_files),
              UnorderedElementsAre("/host/dev/infiniband/uverbs0", "/host/dev/infiniband/rdma_cm"));
}

TEST(PluginDevicesTest, WhatIsLostOrUnknownIsNotGiven) {
  PluginOptions options;
  Machine machine = TwoIslands();
  const auto all = PluginResourcesOf(machine, options);
  const PluginResource& gpus = Find(all, "nvidia.com/gpu");
  machine.gpus[1].gpu.is_healthy = false;
  const auto lost = AllocateDevices(machine, options, gpus, {"GPU-1"});
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("GPU-1 is lost"));
  EXPECT_EQ(AllocateDevices(machine, options, gpus, {"GPU-9"}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(AllocateDevices(machine, options, gpus, {}).ok());
  EXPECT_FALSE(AllocateDevices(machine, options, Find(all, "weft.dev/rdma"), {"mlx5_1"}).ok());
}

TEST(PluginDevicesTest, SharesComeFromOneGpu) {
  PluginOptions options;
  options.shares_all = true;
  const Machine machine = TwoIslands();
  const PluginResource shares = PluginResourcesOf(machine, options)[0];
  // GPU-1 has two left, which is enough; the others more.
  const std::vector<std::string> free = {"GPU-0/0", "GPU-0/1", "GPU-0/2", "GPU-1/2",
                                         "GPU-1/3", "GPU-2/0", "GPU-2/1", "GPU-2/2"};
  const auto chosen = PreferDevices(shares, free, {}, 2);
  EXPECT_THAT(chosen, ElementsAre("GPU-1/2", "GPU-1/3"));
  const auto given = AllocateDevices(machine, options, shares, chosen);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->variables.at("NVIDIA_VISIBLE_DEVICES"), "GPU-1");
  EXPECT_EQ(given->variables.at("ALIYUN_COM_GPU_MEM_CONTAINER"), "2");
  EXPECT_EQ(given->variables.at("ALIYUN_COM_GPU_MEM_DEV"), "4");
  const auto torn = AllocateDevices(machine, options, shares, {"GPU-0/0", "GPU-1/0"});
  EXPECT_THAT(std::string(torn.status().message()), HasSubstr("comes from one GPU"));
}

TEST(PluginDevicesTest, GpusOfOneIslandAreGivenTogether) {
  const PluginResource gpus = PluginResourcesOf(TwoIslands(), PluginOptions())[0];
  EXPECT_THAT(PreferDevices(gpus, {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}, {}, 2),
              ElementsAre("GPU-0", "GPU-1"));
  // One is taken: the other island is whole; a single one leaves the whole one whole.
  EXPECT_THAT(PreferDevices(gpus, {"GPU-1", "GPU-2", "GPU-3"}, {}, 2),
              ElementsAre("GPU-2", "GPU-3"));
  EXPECT_THAT(PreferDevices(gpus, {"GPU-1", "GPU-2", "GPU-3"}, {}, 1), ElementsAre("GPU-1"));
  EXPECT_THAT(PreferDevices(gpus, {"GPU-1", "GPU-2", "GPU-3"}, {"GPU-3"}, 2),
              ElementsAre("GPU-3", "GPU-2"));
  EXPECT_THAT(PreferDevices(gpus, {"GPU-1"}, {}, 3), ElementsAre("GPU-1"));
}

}  // namespace
}  // namespace weft::platform
