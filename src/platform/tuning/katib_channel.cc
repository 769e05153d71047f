// SPDX-License-Identifier: Apache-2.0
#include "platform/tuning/katib_channel.h"

#include <utility>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"

namespace weft::platform {
namespace {

constexpr int kMostReplyBytes = 64 << 20;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostReplyBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

class KatibChannel::Impl {
 public:
  explicit Impl(const std::string& address) : address_(address), stub_(ChannelTo(address)) {}

  StatusOr<std::string> Call(const std::string& path, const std::string& request,
                             absl::Duration timeout) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    const grpc::Slice slice(request);
    grpc::CompletionQueue queue;
    const auto call = stub_.PrepareUnaryCall(&context, path, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool is_ok = false;
    if (!queue.Next(&tag, &is_ok)) return Internal("a call was not answered: ", path);
    if (!status.ok()) {
      return Annotate(
          Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()),
          absl::StrCat("the service at ", address_));
    }
    std::vector<grpc::Slice> slices;
    if (!reply.Dump(&slices).ok()) return Internal("an answer could not be unpacked");
    std::string bytes;
    for (const grpc::Slice& each : slices)
      bytes.append(reinterpret_cast<const char*>(each.begin()), each.size());
    return bytes;
  }

 private:
  const std::string address_;
  grpc::GenericStub stub_;
};

KatibChannel::KatibChannel(const std::string& address) : impl_(std::make_unique<Impl>(address)) {}
KatibChannel::~KatibChannel() = default;

StatusOr<std::string> KatibChannel::Call(const std::string& path, const std::string& request,
                                         absl::Duration timeout) {
  return impl_->Call(path, request, timeout);
}

}  // namespace weft::platform
