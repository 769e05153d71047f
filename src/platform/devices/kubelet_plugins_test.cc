// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/kubelet_plugins.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/threads.h"
#include "platform/devices/kubelet_call.h"
#include "proto/kubelet/device_plugin.pb.h"
#include "proto/kubelet/pod_resources.pb.h"

namespace weft::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ToString(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (buffer.Length() == 0 || !buffer.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Answers Register, and List with what a test sets, as a kubelet does.
class StandInKubelet final : public grpc::CallbackGenericService {
 public:
  explicit StandInKubelet(const std::string& socket) : socket_(socket) {
    ::unlink(socket.c_str());
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
  }
  ~StandInKubelet() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    ::unlink(socket_.c_str());
  }

  std::vector<v1beta1::RegisterRequest> registered() {
    absl::MutexLock lock(&mutex_);
    return registered_;
  }
  void SetHolders(const v1::ListPodResourcesResponse& holders) {
    absl::MutexLock lock(&mutex_);
    holders_ = holders;
  }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(StandInKubelet* kubelet, std::string method)
        : kubelet_(kubelet), method_(std::move(method)) {
      StartRead(&request_);
    }
    void OnReadDone(bool) override {
      response_ = ToBuffer(kubelet_->Answer(method_, ToString(request_)));
      StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    StandInKubelet* const kubelet_;
    const std::string method_;
    grpc::ByteBuffer request_;
    grpc::ByteBuffer response_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(this, context->method());
  }
  std::string Answer(const std::string& method, const std::string& request) {
    absl::MutexLock lock(&mutex_);
    if (method == "/v1.PodResourcesLister/List") return holders_.SerializeAsString();
    EXPECT_EQ(method, "/v1beta1.Registration/Register");
    EXPECT_TRUE(registered_.emplace_back().ParseFromString(request));
    return "";
  }

  const std::string socket_;
  absl::Mutex mutex_;
  std::vector<v1beta1::RegisterRequest> registered_ ABSL_GUARDED_BY(mutex_);
  v1::ListPodResourcesResponse holders_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

// Reads ListAndWatch of a plug-in, list by list.
class DeviceWatch {
 public:
  explicit DeviceWatch(const std::string& socket)
      : stub_(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials())),
        call_(stub_.PrepareCall(&context_, "/v1beta1.DevicePlugin/ListAndWatch", &queue_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context_.set_wait_for_ready(true);
    call_->StartCall(nullptr);
    Next();
    call_->Write(ToBuffer(""), nullptr);
    Next();
  }
  ~DeviceWatch() {
    context_.TryCancel();
    call_->Finish(&status_, nullptr);
    Next();
    queue_.Shutdown();
    void* tag = nullptr;
    bool is_good = false;
    while (queue_.Next(&tag, &is_good)) {
    }
  }
  // "GPU-0 Healthy"; empty when the stream has ended.
  std::vector<std::string> NextList() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    std::vector<std::string> devices;
    if (!Next()) return devices;
    v1beta1::ListAndWatchResponse response;
    EXPECT_TRUE(response.ParseFromString(ToString(buffer)));
    for (const v1beta1::Device& device : response.devices())
      devices.push_back(absl::StrCat(device.id(), " ", device.health()));
    return devices;
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool is_good = false;
    return queue_.Next(&tag, &is_good) && is_good;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
};

Machine TwoGpus() {
  Machine machine;
  for (int i = 0; i < 2; ++i) {
    DriverGpu gpu;
    gpu.gpu.uuid = absl::StrCat("GPU-", i);
    gpu.gpu.memory = int64_t{2} << 30;
    gpu.minor = i;
    machine.gpus.push_back(gpu);
    machine.driver_files.push_back(absl::StrCat("/dev/nvidia", i));
  }
  return machine;
}

class KubeletPluginsTest : public testing::Test {
 protected:
  KubeletPluginsTest() : folder_(absl::StrCat(testing::TempDir(), "weft-plugins-", ::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~KubeletPluginsTest() override { std::filesystem::remove_all(folder_); }

  std::string Socket(const std::string& name) const { return folder_ + "/" + name; }
  std::unique_ptr<KubeletPlugins> Open() {
    auto plugins = KubeletPlugins::Open(folder_, PluginOptions());
    EXPECT_TRUE(plugins.ok()) << plugins.status();
    return *std::move(plugins);
  }
  static v1beta1::AllocateRequest Ask(const std::vector<std::string>& ids) {
    v1beta1::AllocateRequest request;
    auto* const container = request.add_container_requests();
    for (const std::string& id : ids) container->add_devices_ids(id);
    return request;
  }
  StatusOr<std::string> Call(const std::string& method, const std::string& request) const {
    return CallKubelet(Socket(kGpuSocket), "/v1beta1.DevicePlugin/" + method, request,
                       absl::Seconds(10));
  }

  static constexpr char kGpuSocket[] = "weft-nvidia.com-gpu.sock";
  const std::string folder_;
};

TEST_F(KubeletPluginsTest, RegistersAndTellsWhatChanges) {
  StandInKubelet kubelet(Socket("kubelet.sock"));
  const auto plugins = Open();
  Machine machine = TwoGpus();
  ASSERT_TRUE(plugins->Step(machine).ok());
  ASSERT_EQ(kubelet.registered().size(), 1u);
  const v1beta1::RegisterRequest told = kubelet.registered()[0];
  EXPECT_EQ(told.version(), "v1beta1");
  EXPECT_EQ(told.resource_name(), "nvidia.com/gpu");
  EXPECT_EQ(told.endpoint(), kGpuSocket);
  EXPECT_TRUE(told.options().get_preferred_allocation_available());
  struct stat socket = {};
  ASSERT_EQ(::stat(Socket(kGpuSocket).c_str(), &socket), 0);
  EXPECT_EQ(socket.st_mode & 0777, 0600u);

  DeviceWatch watch(Socket(kGpuSocket));
  EXPECT_THAT(watch.NextList(), ElementsAre("GPU-0 Healthy", "GPU-1 Healthy"));
  machine.gpus[1].gpu.is_healthy = false;
  ASSERT_TRUE(plugins->Step(machine).ok());
  EXPECT_THAT(watch.NextList(), ElementsAre("GPU-0 Healthy", "GPU-1 Unhealthy"));
  machine.gpus[1].gpu.is_healthy = true;
  ASSERT_TRUE(plugins->Step(machine).ok());
  EXPECT_THAT(watch.NextList(), ElementsAre("GPU-0 Healthy", "GPU-1 Healthy"));
  // It is told once.
  EXPECT_EQ(kubelet.registered().size(), 1u);
}

TEST_F(KubeletPluginsTest, GivesDevices) {
  const auto plugins = Open();
  Machine machine = TwoGpus();
  // Without a kubelet it serves all the same, and says what is missing.
  const Status alone = plugins->Step(machine);
  EXPECT_EQ(alone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(alone.message()), HasSubstr("no kubelet at"));
  const auto options = Call("GetDevicePluginOptions", "");
  ASSERT_TRUE(options.ok()) << options.status();
  const auto bytes = Call("Allocate", Ask({"GPU-1"}).SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(response.ParseFromString(*bytes));
  ASSERT_EQ(response.container_responses_size(), 1);
  EXPECT_EQ(response.container_responses(0).envs().at("NVIDIA_VISIBLE_DEVICES"), "GPU-1");
  ASSERT_EQ(response.container_responses(0).devices_size(), 1);
  EXPECT_EQ(response.container_responses(0).devices(0).container_path(), "/dev/nvidia1");
  v1beta1::PreferredAllocationRequest wish;
  auto* const container = wish.add_container_requests();
  container->add_available_deviceids("GPU-0");
  container->add_available_deviceids("GPU-1");
  container->set_allocation_size(1);
  const auto preferred = Call("GetPreferredAllocation", wish.SerializeAsString());
  ASSERT_TRUE(preferred.ok()) << preferred.status();
  v1beta1::PreferredAllocationResponse choice;
  ASSERT_TRUE(choice.ParseFromString(*preferred));
  EXPECT_EQ(choice.container_responses(0).deviceids(0), "GPU-0");
  EXPECT_TRUE(Call("PreStartContainer", "").ok());

  machine.gpus[1].gpu.is_healthy = false;
  (void)plugins->Step(machine);
  EXPECT_EQ(Call("Allocate", Ask({"GPU-1"}).SerializeAsString()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Call("Allocate", "\x0a\x7f").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Call("Nonsense", "").status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(KubeletPluginsTest, AKubeletThatStartsAgainIsTold) {
  const auto plugins = Open();
  const Machine machine = TwoGpus();
  auto kubelet = std::make_unique<StandInKubelet>(Socket("kubelet.sock"));
  ASSERT_TRUE(plugins->Step(machine).ok());
  kubelet = nullptr;
  EXPECT_FALSE(plugins->Step(machine).ok());
  // As a kubelet does when it starts.
  ::unlink(Socket(kGpuSocket).c_str());
  kubelet = std::make_unique<StandInKubelet>(Socket("kubelet.sock"));
  ASSERT_TRUE(plugins->Step(machine).ok());
  EXPECT_EQ(kubelet->registered().size(), 1u);
  DeviceWatch watch(Socket(kGpuSocket));
  EXPECT_THAT(watch.NextList(), ElementsAre("GPU-0 Healthy", "GPU-1 Healthy"));
  // One that has let our socket stand.
  kubelet = nullptr;
  kubelet = std::make_unique<StandInKubelet>(Socket("kubelet.sock"));
  ASSERT_TRUE(plugins->Step(machine).ok());
  EXPECT_EQ(kubelet->registered().size(), 1u);
}

TEST_F(KubeletPluginsTest, ThereIsOneAgentOnly) {
  const auto plugins = Open();
  const auto second = KubeletPlugins::Open(folder_, PluginOptions());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Another agent"));
  EXPECT_EQ(KubeletPlugins::Open(folder_ + "/nowhere", PluginOptions()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(KubeletPluginsTest, WhoHasWhat) {
  StandInKubelet kubelet(Socket("holders.sock"));
  v1::ListPodResourcesResponse holders;
  auto* const pod = holders.add_pod_resources();
  pod->set_name("p");
  pod->set_namespace_("default");
  auto* const container = pod->add_containers();
  container->set_name("c");
  auto* const devices = container->add_devices();
  devices->set_resource_name("nvidia.com/gpu");
  devices->add_device_ids("GPU-1");
  kubelet.SetHolders(holders);
  const auto found = ListDeviceHolders(Socket("holders.sock"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].pod, "p");
  EXPECT_THAT((*found)[0].ids, ElementsAre("GPU-1"));
  EXPECT_FALSE(ListDeviceHolders(Socket("nowhere.sock")).ok());
}

}  // namespace
}  // namespace weft::platform
