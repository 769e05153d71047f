// SPDX-License-Identifier: Apache-2.0
// Steps on the fake accelerator, behind a server as anybody would start it: devices_test LIBRARY.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/api/ops.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/device/plugin/plugin_devices.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* library = nullptr;
constexpr char kAsic[] = "/device:ASIC:0";

// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* const name_;
};

class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() : graph_(&StandardCatalogue().ops()), b_(&graph_) {}

  void Start(bool soft = true) {
    RegisterOps(catalogue_);
    auto plugin = PluginDevices::Load(library);
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    plugin_ = *std::move(plugin);
    ASSERT_EQ(plugin_->AddKernels(&catalogue_), absl::OkStatus());
    devices_.emplace(std::vector<DeviceFactory*>{&StandardDevices(), plugin_.get()});
    server::ServerOptions options{
        .task = {"local", 0}, .catalogue = &catalogue_, .devices = &*devices_, .num_threads = 2};
    auto spec = cluster::ClusterSpec::FromJson(R"({"local":["127.0.0.1:0"]})");
    ASSERT_TRUE(spec.ok()) << spec.status();
    options.cluster = *std::move(spec);
    auto server = server::Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    NewSession(soft);
  }

  void NewSession(bool soft) {
    auto session = client::NewSession({.target = server_->target(), .soft_placement = soft});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  Endpoint OnAsic(Endpoint endpoint) {
    if (endpoint.node != nullptr) endpoint.node->set_requested_device(kAsic);
    return endpoint;
  }
  Endpoint Input(const char* name) { return op::Placeholder(b_, DType::kFloat, {.name = name}); }
  Status Extend() {
    WEFT_RETURN_IF_ERROR(b_.status());
    return session_->Extend(ExportGraph(graph_, {}));
  }
  StatusOr<Tensor> Run(const std::vector<session::Feed>& feeds, const std::string& fetch) {
    std::vector<Tensor> results;
    WEFT_RETURN_IF_ERROR(session_->Run(feeds, {fetch}, {}, &results));
    return results[0];
  }

  Catalogue catalogue_;
  std::unique_ptr<PluginDevices> plugin_;
  std::optional<JoinedDevices> devices_;
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<session::Session> session_;
  Graph graph_;
  GraphBuilder b_;
};

TEST_F(DevicesTest, TheDeviceIsListedBesideTheCpu) {
  Start();
  auto all = session_->ListDevices();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[1].name, "/job:local/replica:0/task:0/device:ASIC:0");
  EXPECT_EQ((*all)[1].type, "ASIC");
  EXPECT_EQ((*all)[1].memory_limit_bytes, int64_t{1} << 30);
}

TEST_F(DevicesTest, AStepCrossesBetweenTheDevices) {
  Start();
  const Endpoint x = Input("x");
  const Endpoint squared = OnAsic(b_.Op("Square", {x}, {}, "squared"));
  const Endpoint half = b_.Op("Mul", {squared, b_.Scalar<float>(0.5F)}, {}, "half");
  OnAsic(b_.Op("Sum",
               {half, b_.Op("Const", {},
                            {{"dtype", DType::kInt32}, {"value", Tensor::Vector<int32_t>({0})}})},
               {}, "sum"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  for (int i = 0; i < 20; ++i) {
    auto sum = Run({{"x:0", Tensor::Vector<float>({1, 2, static_cast<float>(i)})}}, "sum:0");
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(sum->scalar<float>(), 0.5F * (5 + static_cast<float>(i * i)));
  }
}

TEST_F(DevicesTest, VariablesLiveOnTheDeviceFromStepToStep) {
  Start();
  const Endpoint w =
      OnAsic(b_.Op("VariableV2", {}, {{"shape", Shape{2}}, {"dtype", DType::kFloat}}, "w"));
  const Endpoint x = Input("x");
  OnAsic(b_.Op("Assign", {w, x}, {}, "assign"));
  OnAsic(b_.Op("ApplyGradientDescent", {w, b_.Scalar<float>(0.5F), x}, {}, "train"));
  OnAsic(b_.Op("Identity", {w}, {}, "read"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  const Tensor ones = Tensor::Vector<float>({1, 3});
  ASSERT_EQ(session_->Run({{"x:0", ones}}, {}, {"assign"}, nullptr), absl::OkStatus());
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(session_->Run({{"x:0", ones}}, {}, {"train"}, nullptr), absl::OkStatus());
  auto value = Run({}, "read:0");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_THAT(value->span<float>(), ::testing::ElementsAre(-1, -3));
}

TEST_F(DevicesTest, AnOpWithoutAKernelThereFallsBackOrIsRefused) {
  Start(/*soft=*/true);
  const Endpoint x = Input("x");
  OnAsic(b_.Op("Erf", {OnAsic(b_.Op("Square", {x}, {}, "squared"))}, {}, "erf"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  auto soft = Run({{"x:0", Tensor::Vector<float>({0})}}, "erf:0");
  ASSERT_TRUE(soft.ok()) << soft.status();
  EXPECT_EQ(soft->data<float>()[0], 0);
  NewSession(/*soft=*/false);
  const Status refused = Extend();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("operation erf"), HasSubstr("for op Erf"), HasSubstr("device:ASIC:0"),
                    HasSubstr("device:CPU:0")));
}

TEST_F(DevicesTest, OutOfMemoryFailsTheStepWithNameAndSizeAndNothingElse) {
  const Environment small("WEFT_ASIC_MEMORY", "1000000");
  Start();
  const Endpoint x = Input("x");
  OnAsic(b_.Op("Square", {x}, {}, "squared"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  auto large = Tensor::Zeros(DType::kFloat, Shape{1000, 1000});
  ASSERT_TRUE(large.ok());
  const Status full = Run({{"x:0", *large}}, "squared:0").status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("_arg_x_0/"), HasSubstr("ASIC:0"), HasSubstr("[1000,1000]"),
                    HasSubstr("4000000 bytes")));
  auto fits = Run({{"x:0", Tensor::Vector<float>({3})}}, "squared:0");
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(fits->data<float>()[0], 9);
}

TEST_F(DevicesTest, ADeviceThatDiesInAStepFailsItAndThoseAfterIt) {
  Start();
  const Endpoint x = Input("x");
  OnAsic(b_.Op("Square", {x}, {}, "ends_the_device"));
  OnAsic(b_.Op("Exp", {x}, {}, "exp"));
  b_.Op("Neg", {x}, {}, "neg");
  ASSERT_EQ(Extend(), absl::OkStatus());
  const Tensor one = Tensor::Vector<float>({1});
  const Status died = Run({{"x:0", one}}, "ends_the_device:0").status();
  EXPECT_THAT(std::string(died.message()), HasSubstr("unplugged"));
  const Status after = Run({{"x:0", one}}, "exp:0").status();
  EXPECT_THAT(std::string(after.message()), AllOf(HasSubstr("ASIC"), HasSubstr("unplugged")));
  auto host = Run({{"x:0", one}}, "neg:0");
  ASSERT_TRUE(host.ok()) << host.status();
}

// Whatever it waits for: a copy to the host, the end of its work, or the copy of a variable that
// somebody still reads.
TEST_F(DevicesTest, AStepOnADeviceThatStandsStillEndsAtItsTimeout) {
  Start();
  const Endpoint x = Input("x");
  OnAsic(b_.Op("Square", {x}, {}, "stands_still"));
  OnAsic(b_.Op("Square", {x}, {}, "squared"));
  const Endpoint w = OnAsic(b_.Op(
      "VarHandleOp", {},
      {{"dtype", DType::kFloat}, {"shape", PartialShape(Shape{1})}, {"shared_name", "w"}}, "w"));
  OnAsic({b_.AddNode("AssignVariableOp", {w, x}, {}, "set"), 0});
  const Endpoint before =
      OnAsic(b_.Op("ReadVariableOp", {w}, {{"dtype", DType::kFloat}}, "before"));
  const Endpoint held = OnAsic(b_.Op("Square", {before}, {}, "stands_still_too"));
  b_.set_control_inputs({held.node});
  Node* const add = b_.AddNode("AssignAddVariableOp", {w, x}, {}, "add");
  OnAsic({add, 0});
  b_.set_control_inputs({add});
  OnAsic(b_.Op("AddV2", {before, x}, {}, "sum"));
  b_.set_control_inputs({});
  ASSERT_EQ(Extend(), absl::OkStatus());
  const Tensor three = Tensor::Vector<float>({3});
  ASSERT_EQ(session_->Run({{"x:0", three}}, {}, {"set"}, nullptr), absl::OkStatus());
  const session::RunOptions hurried{.timeout = absl::Milliseconds(200)};
  for (const char* fetch : {"stands_still:0", "sum:0"}) {
    const Status late = session_->Run(hurried, {{"x:0", three}}, {fetch}, {}, nullptr, nullptr);
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << fetch << ": " << late;
  }
  for (const char* target : {"stands_still", "add"}) {
    const Status late = session_->Run(hurried, {{"x:0", three}}, {}, {target}, nullptr, nullptr);
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << target << ": " << late;
  }
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(loaded, nullptr);
  reinterpret_cast<void (*)()>(dlsym(loaded, "asic_go_on"))();
  auto squared = Run({{"x:0", three}}, "squared:0");
  ASSERT_TRUE(squared.ok()) << squared.status();
  EXPECT_EQ(squared->data<float>()[0], 9);
}

TEST_F(DevicesTest, AKernelThatTheLibraryDidNotMakeIsAnError) {
  Start();
  OnAsic(b_.Op("Square", {Input("x")}, {}, "squared"));
  ASSERT_EQ(Extend(), absl::OkStatus());
  for (const auto& [fault, text] : {std::pair("no_kernel", "made no kernel of Square"),
                                    std::pair("rank", "a rank of 1073741824")}) {
    const Environment set("WEFT_ASIC_FAULT", fault);
    const Status refused = Run({{"x:0", Tensor::Vector<float>({3})}}, "squared:0").status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr(text));
  }
  EXPECT_TRUE(Run({{"x:0", Tensor::Vector<float>({3})}}, "squared:0").ok());
}

TEST(DeviceMemoryTest, ADescriptionWithoutAnEndIsCutOff) {
  const Environment set("WEFT_ASIC_FAULT", "endless_text");
  auto plugin = PluginDevices::Load(library);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  ThreadPool threads("test", 1);
  auto devices = (*plugin)->Make({.job = "a", .replica = 0, .task = 0}, &threads);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ((*devices)[0]->attributes().description, std::string(128, 'x'));
}

TEST(DeviceMemoryTest, HostAccessToATensorOfADeviceFaults) {
  auto plugin = PluginDevices::Load(library);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  ThreadPool threads("test", 1);
  auto devices = (*plugin)->Make({.job = "a", .replica = 0, .task = 0}, &threads);
  ASSERT_TRUE(devices.ok()) << devices.status();
  DeviceMemory* const memory = (*devices)[0]->memory();
  const Tensor host = Tensor::Vector<float>({1, 2, 3});
  auto there = host.ToDevice(memory);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->memory(), memory);
  EXPECT_EQ(there->SliceRows(1, 3).device_address(), there->device_address() + sizeof(float));
  EXPECT_DEATH(std::fprintf(stderr, "%f", there->data<float>()[0]), "");
  EXPECT_DEATH(std::fprintf(stderr, "%f", *reinterpret_cast<float*>(there->device_address())), "");
  auto copy = there->Clone();
  ASSERT_TRUE(copy.ok()) << copy.status();
  auto back = copy->SliceRows(1, 3).ToHost();
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->span<float>(), ::testing::ElementsAre(2, 3));
}

TEST(BadLibraryTest, EachGivesOneErrorThatSaysWhatIsWrong) {
  const auto refuse = [](const std::string& path) {
    return std::string(PluginDevices::Load(path).status().message());
  };
  EXPECT_THAT(refuse("/nowhere/libasic.so"), HasSubstr("/nowhere/libasic.so: No such file"));
  EXPECT_THAT(refuse("/etc/passwd"), HasSubstr("cannot be loaded"));
  const std::pair<const char*, const char*> faults[] = {
      {"version", "is made for version 42"},
      {"crash", "crashed when it was tried: Segmentation fault"},
      {"no_memory", "ASIC:0 has no memory"},
      {"twins", "two devices of one name"},
      {"no_launch", "leaves out functions"},
      {"type", "calls its type 'CPU'"},
      {"types", "kernel 0 of Square lists types that are not there"},
      {"misplaced", "expected a multiple of 64"},
      {"garbles", "ASIC:0 gave other bytes than it was sent"}};
  for (const auto& [fault, text] : faults) {
    const Environment set("WEFT_ASIC_FAULT", fault);
    EXPECT_THAT(refuse(library), AllOf(HasSubstr(library), HasSubstr(text))) << fault;
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  weft::library = argv[1];
  return RUN_ALL_TESTS();
}
