// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/health_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/string_view.h"

namespace weft::platform {
namespace {

// A HealthCheckRequest: field 1 is the service.
grpc::ByteBuffer Request(const std::string& service) {
  std::string bytes;
  if (!service.empty()) {
    bytes.push_back('\x0a');
    size_t length = service.size();
    for (; length >= 0x80; length >>= 7) bytes.push_back(static_cast<char>(length | 0x80));
    bytes.push_back(static_cast<char>(length));
    bytes.append(service);
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// A HealthCheckResponse, of which field 1 is 1 when it serves.
Status ReadResponse(const grpc::ByteBuffer& response) {
  grpc::Slice slice;
  if (!response.DumpToSingleSlice(&slice).ok()) return DataLoss("The answer cannot be read");
  const absl::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
  const int state = bytes.size() >= 2 && bytes[0] == '\x08' ? bytes[1] : 0;
  if (state == 1) return absl::OkStatus();
  const char* const words = state == 2 ? "NOT_SERVING" : state == 3 ? "SERVICE_UNKNOWN" : "UNKNOWN";
  return Unavailable("The server says ", words);
}

}  // namespace

Status CallHealth(const std::string& address, const std::string& service, absl::Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetUserAgentPrefix("kube-probe/weft");
  grpc::GenericStub stub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", Request(service), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool is_good = false;
  queue.Next(&tag, &is_good);
  queue.Shutdown();
  if (status.ok()) return ReadResponse(response);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    return Unimplemented("The server does not speak grpc.health.v1");
  return Unavailable("It does not answer: ", status.error_message());
}

}  // namespace weft::platform
