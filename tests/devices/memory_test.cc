// SPDX-License-Identifier: Apache-2.0
// What lies in the fake accelerator's memory, and for how long, in a session of this process:
// memory_test LIBRARY.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/device/plugin/plugin_devices.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft {
namespace {

const char* library = nullptr;

class DeviceMemoryTest : public ::testing::Test {
 protected:
  DeviceMemoryTest() : graph_(&StandardCatalogue().ops()), b_(&graph_) {}
  ~DeviceMemoryTest() override { unsetenv("WEFT_ASIC_MEMORY"); }

  void Start() {
    RegisterOps(catalogue_);
    auto plugin = PluginDevices::Load(library);
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    ASSERT_EQ(plugin_->AddKernels(&catalogue_), absl::OkStatus());
    devices_.emplace(std::vector<DeviceFactory*>{&StandardDevices(), plugin_.get()});
    auto session = session::NewDirectSession(
        {.catalogue = &catalogue_, .devices = &*devices_, .num_threads = 2});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }
  Endpoint OnAsic(Endpoint endpoint) {
    if (endpoint.node != nullptr) endpoint.node->set_requested_device("/device:ASIC:0");
    return endpoint;
  }
  Endpoint Input(const char* name) {
    return b_.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, name);
  }
  Status Extend() {
    WEFT_RETURN_IF_ERROR(b_.status());
    return session_->Extend(ExportGraph(graph_));
  }
  StatusOr<Tensor> Run(const std::vector<session::Feed>& feeds, const std::string& fetch) {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session_->Run(feeds, {fetch}, {}, &results));
    return results[0];
  }

  Catalogue catalogue_;
  std::unique_ptr<PluginDevices> plugin_;
  std::optional<JoinedDevices> devices_;
  std::unique_ptr<session::Session> session_;
  Graph graph_;
  GraphBuilder b_;
};

// What the fake accelerator says of itself.
uint64_t CopiesIn() {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return 0;
  const auto count = reinterpret_cast<uint64_t (*)()>(dlsym(loaded, "asic_copies_in"));
  dlclose(loaded);
  return count != nullptr ? count() : 0;
}

TEST_F(DeviceMemoryTest, AConstantIsCopiedToTheDeviceOnce) {
  Start();
  const Endpoint x = Input("x");
  const Endpoint weights =
      b_.Op("Const", {}, {{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>({1, 2, 3})}},
            "weights");
  const Endpoint doubled = OnAsic(b_.Op("Mul", {weights, OnAsic(b_.Op("AddV2", {weights, x}))}));
  OnAsic(b_.Op("AddV2", {doubled, weights}, {}, "y"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  for (int step = 0; step < 5; ++step) {
    const uint64_t before = CopiesIn();
    auto y = Run({{"x:0", Tensor::Vector<float>({1, 1, static_cast<float>(step)})}}, "y:0");
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT(y->span<float>(), ::testing::ElementsAre(3, 8, 3 * (3 + step) + 3));
    // The feed in each step; the constant, in whose place nobody writes, in the first.
    EXPECT_EQ(CopiesIn() - before, step == 0 ? 2 : 1) << "step " << step;
  }
}

TEST_F(DeviceMemoryTest, OutputsInheritTheMemoryOfInputsThatNobodyReadsAnyMore) {
  setenv("WEFT_ASIC_MEMORY", "2500000", 1);  // two tensors
  Start();
  const Endpoint x = Input("x");
  Endpoint chain = x;
  for (int i = 0; i < 6; ++i) chain = OnAsic(b_.Op("Neg", {chain}));
  // Two read the end of the chain: the second writes over it.
  const Endpoint down = OnAsic(b_.Op("Neg", {chain}, {}, "down"));
  const Endpoint square = OnAsic(b_.Op("Square", {chain}, {}, "square"));
  ASSERT_TRUE(b_.ok()) << b_.status();
  graph_.AddControlEdge(down.node, square.node);
  OnAsic(b_.Op("AddV2", {down, square}, {}, "y"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  auto large = Tensor::Zeros(DType::kFloat, Shape{250, 1000});
  ASSERT_TRUE(large.ok());
  large->data<float>()[7] = 3;
  for (int step = 0; step < 3; ++step) {
    auto y = Run({{"x:0", *large}}, "y:0");
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->data<float>()[7], 6);
    EXPECT_EQ(y->data<float>()[8], 0);
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) weft::library = argv[1];
  return RUN_ALL_TESTS();
}
