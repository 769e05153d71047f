// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/kubelet_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/str_cat.h"

namespace weft::platform {

StatusOr<std::string> CallKubelet(const std::string& path, const std::string& method,
                                  const std::string& request, absl::Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A Unix socket's path is no name of a host, which a Go server would refuse.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  grpc::GenericStub stub(grpc::CreateCustomChannel(absl::StrCat("unix:", path),
                                                   grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer message(&slice, 1);
  const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool is_good = false;
  queue.Next(&tag, &is_good);
  queue.Shutdown();
  if (!status.ok()) {
    return Status(static_cast<absl::StatusCode>(status.error_code()),
                  absl::StrCat("The kubelet at ", path, ": ", status.error_message()));
  }
  grpc::Slice answer;
  if (response.Length() == 0) return std::string();
  if (!response.DumpToSingleSlice(&answer).ok())
    return DataLoss("The answer of the kubelet at ", path, " cannot be read");
  return std::string(reinterpret_cast<const char*>(answer.begin()), answer.size());
}

}  // namespace weft::platform
