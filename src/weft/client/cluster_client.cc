// SPDX-License-Identifier: Apache-2.0
#include "weft/client/cluster_client.h"

#include <memory>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "proto/tensorflow/master.pb.h"
#include "weft/wire/device_proto.h"
#include "weft/wire/grpc_service.h"
#include "weft/wire/step_messages.h"

namespace weft::client {

StatusOr<std::vector<DeviceAttributes>> ListClusterDevices(const std::string& address,
                                                           absl::Duration timeout) {
  const std::string host_port(absl::StripPrefix(address, "grpc://"));
  wire::ClientCall call{.method = "/tensorflow.MasterService/ListDevices",
                        .request = wire::SerializeMessage(tensorflow::ListDevicesRequest()),
                        .deadline = absl::Now() + timeout};
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<wire::GrpcChannel> channel,
                        wire::GrpcChannel::ConnectFromEnvironment(host_port));
  StatusOr<std::unique_ptr<wire::ClientReply>> reply = channel->CallAndWait(std::move(call));
  if (!reply.ok()) return Annotate(reply.status(), absl::StrCat("Asking ", host_port));
  tensorflow::ListDevicesResponse response;
  WEFT_RETURN_IF_ERROR(wire::ParseMessage((*reply)->response(), &response));
  std::vector<DeviceAttributes> devices;
  for (const auto& device : response.local_device())
    devices.push_back(wire::DeviceFromProto(device));
  for (const auto& device : response.remote_device())
    devices.push_back(wire::DeviceFromProto(device));
  return devices;
}

Status ResetCluster(const SessionOptions& options, const std::vector<std::string>& containers) {
  const std::string address(absl::StripPrefix(options.target, "grpc://"));
  tensorflow::ResetRequest request;
  for (const std::string& container : containers) request.add_container(container);
  for (const std::string& filter : options.device_filters) request.add_device_filters(filter);
  wire::ClientCall call{.method = "/tensorflow.MasterService/Reset",
                        .request = wire::SerializeMessage(request),
                        .deadline = absl::Now() + options.connect_timeout,
                        .wait_for_ready = true};
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<wire::GrpcChannel> channel,
                        wire::GrpcChannel::ConnectFromEnvironment(address));
  return Annotate(channel->CallAndWait(std::move(call)).status(),
                  absl::StrCat("Resetting ", address));
}

}  // namespace weft::client
