// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/machine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/resources/fit.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A machine's files below a folder of its own.
class MachineTest : public testing::Test {
 protected:
  MachineTest() : root_(absl::StrCat(testing::TempDir(), "weft-machine-", ::getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    ::unsetenv("STAND_IN_GPUS");
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  // `sockets` with `cores` each, two threads a core where `is_threaded`, one NUMA node and one
  // last-level cache a socket.
  void WriteProcessors(int sockets, int cores, bool is_threaded, int64_t memory_kib) {
    const int half = sockets * cores;
    const int all = is_threaded ? 2 * half : half;
    Write("/sys/devices/system/cpu/online", absl::StrCat("0-", all - 1));
    for (int i = 0; i < all; ++i) {
      const std::string own = absl::StrCat("/sys/devices/system/cpu/cpu", i);
      const int core = i % half;
      const int socket = core / cores;
      Write(own + "/topology/physical_package_id", absl::StrCat(socket));
      Write(own + "/topology/core_id", absl::StrCat(core % cores));
      Write(own + "/cache/index0/level", "1");
      Write(own + "/cache/index3/level", "3");
      Write(own + "/cache/index3/type", "Unified");
      Write(own + "/cache/index3/size", "55296K");
      Write(own + "/cache/index3/shared_cpu_list", ListOf(socket, cores, half, is_threaded));
    }
    for (int i = 0; i < sockets; ++i) {
      const std::string own = absl::StrCat("/sys/devices/system/node/node", i);
      Write(own + "/cpulist", ListOf(i, cores, half, is_threaded));
      Write(own + "/meminfo",
            absl::StrCat("Node ", i, " MemTotal:       ", memory_kib / sockets, " kB"));
    }
    Write("/proc/meminfo", absl::StrCat("MemTotal:       ", memory_kib, " kB\nMemFree: 1 kB"));
  }
  static std::string ListOf(int socket, int cores, int half, bool is_threaded) {
    const int first = socket * cores;
    std::string list = absl::StrCat(first, "-", first + cores - 1);
    if (is_threaded) absl::StrAppend(&list, ",", half + first, "-", half + first + cores - 1);
    return list;
  }
  void WriteAdapter(const std::string& name, const std::string& layer, const std::string& state,
                    int numa) {
    const std::string own = "/sys/class/infiniband/" + name;
    Write(own + "/device/numa_node", absl::StrCat(numa));
    Write(own + "/ports/1/state", state);
    Write(own + "/ports/1/link_layer", layer);
    Write(own + "/ports/1/rate", "200 Gb/sec (4X HDR)");
  }
  void WriteGpus(int count, const std::string& model, int mib, int sockets) {
    std::vector<std::string> gpus;
    for (int i = 0; i < count; ++i) {
      const int socket = i * sockets / count;
      const std::string address = absl::StrCat("0000:", socket == 0 ? "1" : "9", i % 10, ":00.0");
      gpus.push_back(absl::StrCat(model, "/", mib, "/", address));
      Write("/sys/bus/pci/devices/" + address + "/numa_node", absl::StrCat(socket));
      Write(absl::StrCat("/dev/nvidia", i), "");
    }
    Write("/dev/nvidiactl", "");
    ::setenv("STAND_IN_GPUS", absl::StrJoin(gpus, ";").c_str(), 1);
  }
  Machine Read() { return ReadMachine(root_, WEFT_STAND_IN_NVML); }
  static std::string Label(const Json& node, const char* name) {
    return StringField(node, {"metadata", "labels", name});
  }

  const std::string root_;
};

// Two sockets of 64 cores, 8 GPUs, 8 adapters for them, as a DGX A100 has.
TEST_F(MachineTest, AServerOfEightGpus) {
  WriteProcessors(2, 64, true, int64_t{2} << 30);
  WriteGpus(8, "NVIDIA A100-SXM4-80GB", 81920, 2);
  for (int i = 0; i < 8; ++i)
    WriteAdapter(absl::StrCat("mlx5_", i), "InfiniBand", "4: ACTIVE", i / 4);
  Write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512");
  Write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0");
  const Machine machine = Read();
  EXPECT_EQ(machine.sockets, 2);
  EXPECT_EQ(machine.cores, 128);
  EXPECT_EQ(machine.processors, 256);
  ASSERT_EQ(machine.numa_nodes.size(), 2u);
  EXPECT_EQ(machine.numa_nodes[1].processors.size(), 128u);
  EXPECT_EQ(machine.numa_nodes[1].memory, int64_t{1} << 40);
  EXPECT_EQ(machine.caches.size(), 2u);
  ASSERT_EQ(machine.gpus.size(), 8u);
  EXPECT_EQ(machine.gpus[7].gpu.numa_node, 1);
  EXPECT_THAT(machine.driver_files, testing::Contains("/dev/nvidiactl"));

  const Json node = DescribeAsNode(machine, "dgx");
  EXPECT_EQ(Label(node, "alpha.kubernetes.io/infiniBand"), "true");
  EXPECT_EQ(Label(node, "nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(Label(node, "weft.dev/numa-nodes"), "2");
  EXPECT_EQ(StringField(node, {"status", "allocatable", "hugepages-2Mi"}), "1Gi");
  EXPECT_EQ(FindField(node, {"status", "allocatable", "hugepages-1Gi"}), nullptr);
  EXPECT_EQ(StringField(node, {"status", "allocatable", "alpha.kubernetes.io/nvidia-gpu"}), "8");
  // Read back, four of them come from one socket.
  ResourceNames names;
  const auto description = ReadNode(node, &names);
  ASSERT_TRUE(description.ok()) << description.status();
  ClusterState state;
  const int number = state.SetNode(std::make_shared<NodeDescription>(*description));
  GpuNeeds needs;
  needs.count = 1;
  Place one;
  one.node = number;
  PodNeeds taken;
  taken.gpu = needs;
  ASSERT_TRUE(ChooseGpus(state.node(number), needs, &one.gpus));
  state.Occupy(std::make_shared<PodNeeds>(taken), one);
  needs.count = 4;
  Place four;
  ASSERT_TRUE(ChooseGpus(state.node(number), needs, &four.gpus));
  EXPECT_THAT(four.gpus, ElementsAre(4, 5, 6, 7));
}

TEST_F(MachineTest, AWorkstation) {
  WriteProcessors(1, 8, true, 64 << 20);
  WriteGpus(1, "NVIDIA GeForce RTX 3090", 24576, 1);
  WriteAdapter("rocep1s0", "Ethernet", "1: DOWN", -1);
  const Json node = DescribeAsNode(Read(), "desk");
  EXPECT_EQ(Label(node, "weft.dev/cores"), "8");
  EXPECT_EQ(Label(node, "nvidia.com/gpu.memory"), "24576");
  // What is down serves nobody.
  EXPECT_EQ(Label(node, "weft.dev/rdma-adapters"), "");
  EXPECT_EQ(Label(node, "alpha.kubernetes.io/infiniBand"), "");
}

TEST_F(MachineTest, AMachineWithoutAnything) {
  WriteProcessors(1, 2, false, 4 << 20);
  const Machine machine = Read();
  EXPECT_EQ(machine.processors, 2);
  EXPECT_TRUE(machine.gpus.empty());
  const Json node = DescribeAsNode(machine, "small");
  EXPECT_EQ(FindField(node, {"metadata", "annotations"}), nullptr);
  EXPECT_EQ(FindField(node, {"status", "allocatable"}), nullptr);
  // Not even files.
  EXPECT_EQ(ReadMachine(root_ + "/nowhere", "/nowhere").processors, 0);
}

TEST_F(MachineTest, ALostGpuIsToldAndNotGiven) {
  WriteProcessors(1, 2, false, 4 << 20);
  ::setenv("STAND_IN_GPUS", "T4/15360/0000:10:00.0;lost/0/0000:11:00.0;T4/15360/0000:12:00.0", 1);
  const Json node = DescribeAsNode(Read(), "n");
  ResourceNames names;
  const auto description = ReadNode(node, &names);
  ASSERT_TRUE(description.ok()) << description.status();
  ASSERT_EQ(description->gpus.size(), 3u);
  EXPECT_TRUE(description->gpus[0].is_healthy);
  EXPECT_FALSE(description->gpus[1].is_healthy);
  EXPECT_TRUE(description->gpus[2].is_healthy);
  EXPECT_EQ(description->gpus[2].memory, int64_t{15} << 30);
}

TEST_F(MachineTest, WhatVanishesStaysAsLost) {
  WriteProcessors(1, 2, false, 4 << 20);
  const char* const all = "T4/15360/0000:10:00.0;T4/15360/0000:11:00.0;T4/15360/0000:12:00.0";
  ::setenv("STAND_IN_GPUS", all, 1);
  WriteAdapter("mlx5_0", "InfiniBand", "4: ACTIVE", 0);
  const Machine before = Read();
  EXPECT_EQ(before.rdma[0].active_ports, 1);
  // The driver forgets the one in the middle, and counts anew.
  ::setenv("STAND_IN_GPUS", "T4/15360/0000:10:00.0;T4/15360/0000:12:00.0", 1);
  std::filesystem::remove_all(root_ + "/sys/class/infiniband");
  const Machine now = LookAgain(before, root_, WEFT_STAND_IN_NVML);
  ASSERT_EQ(now.gpus.size(), 3u);
  EXPECT_EQ(now.gpus[1].gpu.uuid, before.gpus[1].gpu.uuid);
  EXPECT_FALSE(now.gpus[1].gpu.is_healthy);
  EXPECT_EQ(now.gpus[2].gpu.uuid, before.gpus[2].gpu.uuid);
  EXPECT_TRUE(now.gpus[2].gpu.is_healthy);
  ASSERT_EQ(now.rdma.size(), 1u);
  EXPECT_EQ(now.rdma[0].active_ports, 0);
  EXPECT_EQ(now.processors, 2);
  // One that is lost says nothing of itself.
  ::setenv("STAND_IN_GPUS", "T4/15360/0000:10:00.0;lost/0/0000:11:00.0;T4/15360/0000:12:00.0", 1);
  const Machine silent = LookAgain(before, root_, WEFT_STAND_IN_NVML);
  ASSERT_EQ(silent.gpus.size(), 3u);
  EXPECT_EQ(silent.gpus[1].gpu.uuid, before.gpus[1].gpu.uuid);
  EXPECT_FALSE(silent.gpus[1].gpu.is_healthy);
  // The driver has gone as a whole, and comes back.
  ::unsetenv("STAND_IN_GPUS");
  const Machine none = LookAgain(silent, root_, WEFT_STAND_IN_NVML);
  ASSERT_EQ(none.gpus.size(), 3u);
  EXPECT_FALSE(none.gpus[0].gpu.is_healthy);
  ::setenv("STAND_IN_GPUS", all, 1);
  const Machine back = LookAgain(none, root_, WEFT_STAND_IN_NVML);
  ASSERT_EQ(back.gpus.size(), 3u);
  for (const DriverGpu& gpu : back.gpus) EXPECT_TRUE(gpu.gpu.is_healthy);
}

TEST_F(MachineTest, AGpuWithoutItsFileIsNotWell) {
  WriteProcessors(1, 2, false, 4 << 20);
  WriteGpus(2, "T4", 15360, 1);
  EXPECT_TRUE(Read().gpus[1].gpu.is_healthy);
  std::filesystem::remove(root_ + "/dev/nvidia1");
  EXPECT_TRUE(Read().gpus[0].gpu.is_healthy);
  EXPECT_FALSE(Read().gpus[1].gpu.is_healthy);
}

TEST_F(MachineTest, WhichProcessorsAreNear) {
  WriteProcessors(2, 4, true, 4 << 20);
  const ProcessorTopology topology = TopologyOf(Read());
  ASSERT_EQ(topology.size(), 16u);
  EXPECT_EQ(topology.at(0).core, topology.at(8).core);
  EXPECT_NE(topology.at(0).core, topology.at(1).core);
  EXPECT_EQ(topology.at(3).numa_node, 0);
  EXPECT_EQ(topology.at(4).numa_node, 1);
  EXPECT_EQ(topology.at(12).numa_node, 1);
  EXPECT_EQ(topology.at(0).cache, topology.at(11).cache);
  EXPECT_NE(topology.at(0).cache, topology.at(4).cache);
}

TEST_F(MachineTest, FilesThatMakeNoSenseAreLeftOut) {
  Write("/sys/devices/system/cpu/online", "0-1,x,5-3,99999999999,-4");
  Write("/proc/meminfo", "MemTotal: many kB");
  Write("/sys/kernel/mm/hugepages/hugepages-xkB/nr_hugepages", "7");
  Write("/sys/class/infiniband/mlx5_0/ports/1/state", "");
  const Machine machine = Read();
  EXPECT_EQ(machine.processors, 2);
  EXPECT_EQ(machine.memory, 0);
  EXPECT_TRUE(machine.huge_pages.empty());
  EXPECT_EQ(machine.rdma.size(), 1u);
}

TEST(NvmlTest, WhatIsMissingIsTold) {
  ::unsetenv("STAND_IN_GPUS");
  EXPECT_EQ(ReadDriverGpus("/nowhere/libnvidia-ml.so.1").status().code(),
            absl::StatusCode::kNotFound);
  const auto silent = ReadDriverGpus(WEFT_STAND_IN_NVML);
  EXPECT_EQ(silent.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(silent.status().message()), HasSubstr("nvidia-smi"));
}

}  // namespace
}  // namespace weft::platform
