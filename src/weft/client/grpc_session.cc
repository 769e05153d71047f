// SPDX-License-Identifier: Apache-2.0
#include "weft/client/grpc_session.h"

#include <map>
#include <utility>

#include <poll.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "proto/tensorflow/master.pb.h"
#include "weft/graph/graph_proto.h"
#include "weft/transport/tcp/socket.h"
#include "weft/wire/device_proto.h"
#include "weft/wire/grpc_service.h"
#include "weft/wire/run_metadata_proto.h"
#include "weft/wire/step_messages.h"

namespace weft::client {
namespace {

// What is wrong with an address from which no answer came: gRPC does not tell.
std::string WhyNobodyAnswers(const std::string& address) {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  const auto found = transport::tcp::Resolve(address, absl::Now() + kPatience);
  if (!found.ok()) return std::string(found.status().message());
  std::string why;
  for (const transport::tcp::ResolvedAddress& one : *found) {
    StatusOr<transport::tcp::Fd> socket = transport::tcp::StartConnect(one);
    Status status = socket.status();
    if (status.ok()) {
      pollfd ready{.fd = socket->get(), .events = POLLOUT, .revents = 0};
      const int count = poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience)));
      status = count == 1 ? transport::tcp::ConnectError(socket->get())
                          : Unavailable("connections are not taken either");
    }
    if (status.ok()) return "somebody listens there: is it a server, and does it run?";
    why = absl::StrCat(status.message(), ": is the server started?");
  }
  return why;
}

class GrpcSession final : public session::Session {
 public:
  GrpcSession(const SessionOptions& options, std::shared_ptr<wire::GrpcChannel> channel)
      : options_(options),
        address_(absl::StripPrefix(options.target, "grpc://")),
        channel_(std::move(channel)) {}
  ~GrpcSession() override { Close().IgnoreError(); }

  Status Extend(const GraphDef& graph) override {
    tensorflow::GraphDef proto;
    WEFT_RETURN_IF_ERROR(GraphDefToProto(graph, &proto));
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    if (handle_.empty()) return CreateLocked(std::move(proto));
    tensorflow::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    *request.mutable_graph_def() = std::move(proto);
    request.set_current_graph_version(version_);
    tensorflow::ExtendSessionResponse response;
    WEFT_RETURN_IF_ERROR(Ask("ExtendSession", request, &response));
    version_ = response.new_graph_version();
    return absl::OkStatus();
  }

  Status Run(const session::RunOptions& options, const std::vector<step::Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, step::RunMetadata* metadata) override {
    tensorflow::RunStepRequest rest;
    WEFT_ASSIGN_OR_RETURN(*rest.mutable_session_handle(), Handle());
    std::vector<std::string> names;
    for (const std::string& fetch : fetches) {
      names.push_back(absl::StrContains(fetch, ':') ? fetch : fetch + ":0");
      rest.add_fetch(names.back());
    }
    for (const std::string& target : targets) rest.add_target(target);
    rest.set_store_errors_in_response_body(true);
    const bool trace = options.trace && metadata != nullptr;
    if (trace) rest.mutable_options()->set_trace_level(tensorflow::RunOptions::FULL_TRACE);
    if (metadata != nullptr) {
      rest.mutable_options()->set_output_partition_graphs(options.partition_graphs);
    }
    if (options.timeout < absl::InfiniteDuration()) {
      rest.mutable_options()->set_timeout_in_ms(absl::ToInt64Milliseconds(options.timeout));
    }
    wire::Payload payload = wire::SerializeMessage(rest);
    for (const auto& [name, value] : feeds) {
      WEFT_RETURN_IF_ERROR(wire::AppendNamedTensor(2, name, value, &payload));
    }
    wire::ClientCall call{.method = "/tensorflow.MasterService/RunStep",
                          .request = std::move(payload),
                          .cancellation = &cancellation_};
    // The server ends the step by itself; the margin lets its answer, which says more, come first.
    if (options.timeout < absl::InfiniteDuration()) {
      call.deadline = absl::Now() + options.timeout + absl::Seconds(5);
    }
    StatusOr<std::unique_ptr<wire::ClientReply>> answer = channel_->CallAndWait(std::move(call));
    if (!answer.ok()) return Explain(answer.status());
    wire::RunStepReply reply;
    WEFT_RETURN_IF_ERROR(wire::ParseRunStepReply((*answer)->response(), &reply));
    if (reply.rest.status_code() != 0) {
      return Status(static_cast<absl::StatusCode>(reply.rest.status_code()),
                    reply.rest.status_error_message());
    }
    if (metadata != nullptr)
      WEFT_RETURN_IF_ERROR(wire::ReadRunMetadata(reply.rest.metadata(), metadata));
    return TakeResults(names, std::move(reply.fetches), results);
  }

  StatusOr<std::vector<DeviceAttributes>> ListDevices() override {
    tensorflow::ListDevicesRequest request;
    WEFT_ASSIGN_OR_RETURN(*request.mutable_session_handle(), Handle());
    tensorflow::ListDevicesResponse response;
    WEFT_RETURN_IF_ERROR(Ask("ListDevices", request, &response));
    std::vector<DeviceAttributes> devices;
    for (const auto& device : response.local_device())
      devices.push_back(wire::DeviceFromProto(device));
    for (const auto& device : response.remote_device())
      devices.push_back(wire::DeviceFromProto(device));
    return devices;
  }

  Status Close() override {
    std::string handle;
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return absl::OkStatus();
      closed_ = true;
      handle = handle_;
    }
    Status status;
    if (!handle.empty()) {
      tensorflow::CloseSessionRequest request;
      request.set_session_handle(handle);
      tensorflow::CloseSessionResponse response;
      status = Ask("CloseSession", request, &response, absl::Seconds(10));
    }
    cancellation_.Cancel(
        Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
    return status;
  }

 private:
  Status CreateLocked(tensorflow::GraphDef graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tensorflow::CreateSessionRequest request;
    *request.mutable_graph_def() = std::move(graph);
    request.set_target(options_.target);
    request.mutable_config()->set_allow_soft_placement(options_.soft_placement);
    for (const std::string& filter : options_.device_filters) {
      request.mutable_config()->add_device_filters(filter);
    }
    tensorflow::CreateSessionResponse response;
    WEFT_RETURN_IF_ERROR(Ask("CreateSession", request, &response));
    handle_ = response.session_handle();
    version_ = response.graph_version();
    return absl::OkStatus();
  }

  // The handle; a session without a graph is made when it is first needed.
  StatusOr<std::string> Handle() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    if (handle_.empty()) WEFT_RETURN_IF_ERROR(CreateLocked({}));
    return handle_;
  }

  Status Explain(const Status& status) const {
    return Annotate(status, absl::StrCat("Session at ", address_));
  }

  template <typename Request, typename Response>
  Status Ask(const char* method, const Request& request, Response* response,
             absl::Duration timeout = absl::ZeroDuration()) {
    // What has a limit of its own is not worth waiting for a server that is not there.
    const bool wait_for_server = timeout == absl::ZeroDuration();
    if (wait_for_server) timeout = options_.connect_timeout;
    wire::ClientCall call{.method = absl::StrCat("/tensorflow.MasterService/", method),
                          .request = wire::SerializeMessage(request),
                          .deadline = absl::Now() + timeout,
                          .wait_for_ready = wait_for_server};
    StatusOr<std::unique_ptr<wire::ClientReply>> reply = channel_->CallAndWait(std::move(call));
    if (!reply.ok()) {
      const Status status = reply.status();
      if (status.code() == absl::StatusCode::kDeadlineExceeded) {
        return Unavailable("No answer from ", address_, " to ", method, " within ",
                           absl::FormatDuration(timeout), " (", WhyNobodyAnswers(address_), ")");
      }
      return Explain(status);
    }
    return wire::ParseMessage((*reply)->response(), response);
  }

  // The answer's tensors come in any order.
  static Status TakeResults(const std::vector<std::string>& names,
                            std::vector<wire::NamedTensor> answers, std::vector<Tensor>* results) {
    if (results == nullptr) return absl::OkStatus();
    std::map<std::string, Tensor> tensors;
    for (wire::NamedTensor& answer : answers) tensors[answer.name] = std::move(answer.tensor);
    results->clear();
    for (const std::string& name : names) {
      const auto found = tensors.find(name);
      if (found == tensors.end()) return Internal("The master's answer lacks tensor ", name);
      results->push_back(found->second);
    }
    return absl::OkStatus();
  }

  const SessionOptions options_;
  const std::string address_;
  const std::shared_ptr<wire::GrpcChannel> channel_;  // shared with calls that outlive the session
  Cancellation cancellation_;
  absl::Mutex mutex_;
  std::string handle_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<session::Session>> NewGrpcSession(const SessionOptions& options) {
  const std::string address(absl::StripPrefix(options.target, "grpc://"));
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<wire::GrpcChannel> channel,
                        wire::GrpcChannel::ConnectFromEnvironment(address));
  return std::unique_ptr<session::Session>(
      std::make_unique<GrpcSession>(options, std::move(channel)));
}

}  // namespace weft::client
