// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/cluster_client.h"

#include <memory>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "proto/tensorflow/master.pb.h"
#include "weft/cluster/device_proto.h"
#include "weft/cluster/grpc_service.h"
#include "weft/cluster/step_messages.h"

namespace weft::cluster {

StatusOr<std::vector<DeviceAttributes>> ListClusterDevices(const std::string& address,
                                                           absl::Duration timeout) {
  const std::string host_port(absl::StripPrefix(address, "grpc://"));
  ClientCall call{.method = "/tensorflow.MasterService/ListDevices",
                  .request = SerializeMessage(tensorflow::ListDevicesRequest()),
                  .deadline = absl::Now() + timeout};
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<GrpcChannel> channel,
                        GrpcChannel::ConnectFromEnvironment(host_port));
  StatusOr<std::unique_ptr<ClientReply>> reply = channel->CallAndWait(std::move(call));
  if (!reply.ok()) return Annotate(reply.status(), absl::StrCat("Asking ", host_port));
  tensorflow::ListDevicesResponse response;
  WEFT_RETURN_IF_ERROR(ParseMessage((*reply)->response(), &response));
  std::vector<DeviceAttributes> devices;
  for (const auto& device : response.local_device()) devices.push_back(DeviceFromProto(device));
  for (const auto& device : response.remote_device()) devices.push_back(DeviceFromProto(device));
  return devices;
}

}  // namespace weft::cluster
