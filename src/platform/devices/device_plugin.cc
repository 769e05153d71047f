// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/device_plugin.h"

#include <algorithm>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "platform/devices/kubelet_call.h"
#include "proto/kubelet/device_plugin.pb.h"

namespace weft::platform {
namespace {

constexpr char kVersion[] = "v1beta1";
constexpr char kService[] = "/v1beta1.DevicePlugin/";
constexpr absl::Duration kRegistration = absl::Seconds(10);
constexpr absl::Duration kGoodbye = absl::Milliseconds(200);

// "nvidia.com/gpu" -> "weft-nvidia.com-gpu.sock"
std::string SocketName(const std::string& resource) {
  std::string name = "weft-";
  for (const char c : resource) name += absl::ascii_isalnum(c) || c == '.' || c == '-' ? c : '-';
  return name + ".sock";
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Status ToGrpc(const Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

uint64_t InodeOf(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? static_cast<uint64_t>(found.st_ino) : 0;
}

v1beta1::ContainerAllocateResponse ToProto(const DeviceAllocation& given) {
  v1beta1::ContainerAllocateResponse response;
  for (const auto& [name, value] : given.variables) (*response.mutable_envs())[name] = value;
  for (const ContainerFiles& file : given.device_files) {
    v1beta1::DeviceSpec* const device = response.add_devices();
    device->set_host_path(file.host_path);
    device->set_container_path(file.container_path);
    device->set_permissions("rw");
  }
  for (const ContainerFiles& file : given.mounts) {
    v1beta1::Mount* const mount = response.add_mounts();
    mount->set_host_path(file.host_path);
    mount->set_container_path(file.container_path);
    mount->set_read_only(true);
  }
  return response;
}

}  // namespace

// One call on the wire; gRPC's threads run it, and it deletes itself.
class DevicePlugin::Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(DevicePlugin* plugin, std::string method) : plugin_(plugin), method_(std::move(method)) {
    StartRead(&request_);
  }

  void OnReadDone(bool is_good) override {
    grpc::Slice slice;
    if (!is_good || (request_.Length() > 0 && !request_.DumpToSingleSlice(&slice).ok()))
      return End(grpc::Status(grpc::StatusCode::INTERNAL, "The request did not arrive"));
    if (method_ == absl::StrCat(kService, "ListAndWatch")) {
      is_watching_ = true;
      plugin_->AddWatcher(this);
      return Tell();
    }
    const StatusOr<std::string> answer = plugin_->Answer(
        method_, std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()));
    if (!answer.ok()) return End(ToGrpc(answer.status()));
    absl::MutexLock lock(&mutex_);
    if (std::exchange(has_ended_, true)) return;
    response_ = ToBuffer(*answer);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  // Of the devices as they are now; while a list is on its way, the next one waits.
  void Tell() {
    absl::MutexLock lock(&mutex_);
    is_stale_ = true;
    Write();
  }

  void OnWriteDone(bool is_good) override {
    if (!is_good) return End(grpc::Status::CANCELLED);
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    Write();
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (is_watching_) plugin_->RemoveWatcher(this);
    delete this;
  }

 private:
  void End(const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(has_ended_, true)) Finish(status);
  }

  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_writing_ || has_ended_ || !std::exchange(is_stale_, false)) return;
    is_writing_ = true;
    response_ = ToBuffer(plugin_->DeviceList());
    StartWrite(&response_);
  }

  DevicePlugin* const plugin_;
  const std::string method_;
  bool is_watching_ = false;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  absl::Mutex mutex_;
  bool is_stale_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class DevicePlugin::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(DevicePlugin* plugin) : plugin_(plugin) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(plugin_, context->method());
  }

 private:
  DevicePlugin* const plugin_;
};

DevicePlugin::DevicePlugin(std::string folder, PluginResource resource, Allocator allocate)
    : folder_(std::move(folder)),
      socket_(JoinPath(folder_, SocketName(resource.name))),
      allocate_(std::move(allocate)),
      resource_(std::move(resource)) {}

StatusOr<std::unique_ptr<DevicePlugin>> DevicePlugin::Listen(const std::string& folder,
                                                             PluginResource resource,
                                                             Allocator allocate) {
  std::unique_ptr<DevicePlugin> plugin(
      new DevicePlugin(folder, std::move(resource), std::move(allocate)));
  const std::string& socket = plugin->socket_;
  if (socket.size() > 107)
    return InvalidArgument("The socket ", socket, " has a longer name than a socket may have, 107");
  // What an agent that was killed has left.
  ::unlink(socket.c_str());
  plugin->service_ = std::make_unique<Service>(plugin.get());
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(plugin->service_.get());
  builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
  plugin->server_ = builder.BuildAndStart();
  if (plugin->server_ == nullptr || ::chmod(socket.c_str(), 0600) != 0)
    return Unavailable("Cannot listen at ", socket, ": is the folder there, and may we write?");
  plugin->inode_ = InodeOf(socket);
  return plugin;
}

DevicePlugin::~DevicePlugin() {
  if (server_ == nullptr) return;
  const bool is_ours = HasSocket();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + kGoodbye));
  server_->Wait();
  if (is_ours) ::unlink(socket_.c_str());
}

bool DevicePlugin::HasSocket() const { return inode_ != 0 && InodeOf(socket_) == inode_; }

std::string DevicePlugin::name() const { return Resource().name; }

PluginResource DevicePlugin::Resource() const {
  absl::MutexLock lock(&mutex_);
  return resource_;
}

Status DevicePlugin::Register() {
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(SocketName(name()));
  request.set_resource_name(name());
  request.mutable_options()->set_get_preferred_allocation_available(true);
  return CallKubelet(JoinPath(folder_, "kubelet.sock"), "/v1beta1.Registration/Register",
                     request.SerializeAsString(), kRegistration)
      .status();
}

void DevicePlugin::SetDevices(std::vector<PluginDevice> devices) {
  {
    absl::MutexLock lock(&mutex_);
    if (resource_.devices == devices) return;
    resource_.devices = std::move(devices);
  }
  absl::MutexLock lock(&watchers_mutex_);
  for (Call* const call : watchers_) call->Tell();
}

void DevicePlugin::AddWatcher(Call* call) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.insert(call);
}

void DevicePlugin::RemoveWatcher(Call* call) {
  absl::MutexLock lock(&watchers_mutex_);
  watchers_.erase(call);
}

std::string DevicePlugin::DeviceList() const {
  v1beta1::ListAndWatchResponse response;
  absl::MutexLock lock(&mutex_);
  for (const PluginDevice& device : resource_.devices) {
    v1beta1::Device* const told = response.add_devices();
    told->set_id(device.id);
    told->set_health(device.is_healthy ? "Healthy" : "Unhealthy");
    if (device.numa_node >= 0) told->mutable_topology()->add_nodes()->set_id(device.numa_node);
  }
  return response.SerializeAsString();
}

StatusOr<std::string> DevicePlugin::Answer(const std::string& method, const std::string& request) {
  if (method == absl::StrCat(kService, "GetDevicePluginOptions")) {
    v1beta1::DevicePluginOptions options;
    options.set_get_preferred_allocation_available(true);
    return options.SerializeAsString();
  }
  if (method == absl::StrCat(kService, "GetPreferredAllocation")) return Prefer(request);
  if (method == absl::StrCat(kService, "Allocate")) return Allocate(request);
  // It is not asked for: nothing is to be done before a start.
  if (method == absl::StrCat(kService, "PreStartContainer")) return std::string();
  return Unimplemented("No such method: ", method);
}

StatusOr<std::string> DevicePlugin::Prefer(const std::string& request) {
  v1beta1::PreferredAllocationRequest asked;
  if (!asked.ParseFromString(request)) return InvalidArgument("The request cannot be read");
  const PluginResource resource = Resource();
  v1beta1::PreferredAllocationResponse response;
  for (const auto& container : asked.container_requests()) {
    const std::vector<std::string> chosen = PreferDevices(
        resource, {container.available_deviceids().begin(), container.available_deviceids().end()},
        {container.must_include_deviceids().begin(), container.must_include_deviceids().end()},
        static_cast<size_t>(std::max(container.allocation_size(), 0)));
    auto* const answer = response.add_container_responses();
    for (const std::string& id : chosen) answer->add_deviceids(id);
  }
  return response.SerializeAsString();
}

StatusOr<std::string> DevicePlugin::Allocate(const std::string& request) {
  v1beta1::AllocateRequest asked;
  if (!asked.ParseFromString(request)) return InvalidArgument("The request cannot be read");
  const PluginResource resource = Resource();
  v1beta1::AllocateResponse response;
  for (const auto& container : asked.container_requests()) {
    WEFT_ASSIGN_OR_RETURN(
        const DeviceAllocation given,
        allocate_(resource, {container.devices_ids().begin(), container.devices_ids().end()}));
    *response.add_container_responses() = ToProto(given);
  }
  return response.SerializeAsString();
}

}  // namespace weft::platform
