// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/step_messages.h"

#include <limits>

#include "weft/wire/split_message.h"

namespace weft::wire {

using google::protobuf::io::CodedInputStream;

Status ParseRunStep(absl::Span<const absl::string_view> chunks, RunStepMessage* message) {
  std::string rest;
  Status tensor_error;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(NamedTensor feed, ReadNamedTensor(in, size));
    message->feeds.push_back(std::move(feed));
    return absl::OkStatus();
  };
  const Status split = SplitMessage(chunks, tensorflow::RunStepRequest::kFeedFieldNumber, read,
                                    &rest, &tensor_error);
  if (!message->rest.ParseFromString(rest)) return InvalidArgument("RunStepRequest is malformed");
  WEFT_RETURN_IF_ERROR(split);
  return tensor_error;
}

Status ParseRunStepReply(absl::Span<const absl::string_view> chunks, RunStepReply* reply) {
  std::string rest;
  Status tensor_error;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(NamedTensor fetch, ReadNamedTensor(in, size));
    reply->fetches.push_back(std::move(fetch));
    return absl::OkStatus();
  };
  const Status split = SplitMessage(chunks, tensorflow::RunStepResponse::kTensorFieldNumber, read,
                                    &rest, &tensor_error);
  if (!reply->rest.ParseFromString(rest)) return Internal("RunStepResponse is malformed");
  WEFT_RETURN_IF_ERROR(split);
  return tensor_error;
}

Status ParseRunCallable(absl::Span<const absl::string_view> chunks, RunCallableMessage* message) {
  std::string rest;
  Status tensor_error;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(Tensor feed, ReadTensor(in, size));
    message->feeds.push_back(std::move(feed));
    return absl::OkStatus();
  };
  const Status split = SplitMessage(chunks, tensorflow::RunCallableRequest::kFeedFieldNumber, read,
                                    &rest, &tensor_error);
  if (!message->rest.ParseFromString(rest))
    return InvalidArgument("RunCallableRequest is malformed");
  WEFT_RETURN_IF_ERROR(split);
  return tensor_error;
}

Status ParseCreateSession(absl::Span<const absl::string_view> chunks,
                          CreateSessionMessage* message) {
  std::string rest;
  Status graph_error;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    std::string bytes;
    if (!in->ReadString(&bytes, size)) return InvalidArgument("CreateSessionRequest is cut short");
    // A field that stands twice is merged, as protobuf does.
    message->graph += bytes;
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(SplitMessage(chunks, tensorflow::CreateSessionRequest::kGraphDefFieldNumber,
                                    read, &rest, &graph_error));
  WEFT_RETURN_IF_ERROR(graph_error);
  if (message->rest.ParseFromString(rest)) return absl::OkStatus();
  return InvalidArgument("CreateSessionRequest is malformed");
}

Status ParseRunGraph(absl::Span<const absl::string_view> chunks, RunGraphMessage* message) {
  std::string rest;
  Status tensor_error;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(NamedTensor sent, ReadNamedTensor(in, size));
    message->sends.push_back(std::move(sent));
    return absl::OkStatus();
  };
  const Status split = SplitMessage(chunks, tensorflow::RunGraphRequest::kSendFieldNumber, read,
                                    &rest, &tensor_error);
  if (!message->rest.ParseFromString(rest)) return InvalidArgument("RunGraphRequest is malformed");
  WEFT_RETURN_IF_ERROR(split);
  return tensor_error;
}

StatusOr<ReceivedTensor> ParseRecvTensorReply(absl::Span<const absl::string_view> chunks) {
  std::string rest;
  Status tensor_error;
  ReceivedTensor received;
  const auto read = [&](CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(received.tensor, ReadTensor(in, size));
    return absl::OkStatus();
  };
  const Status split = SplitMessage(chunks, tensorflow::RecvTensorResponse::kTensorFieldNumber,
                                    read, &rest, &tensor_error);
  tensorflow::RecvTensorResponse response;
  if (!response.ParseFromString(rest)) return Internal("RecvTensorResponse is malformed");
  WEFT_RETURN_IF_ERROR(split);
  received.is_dead = response.is_dead();
  if (received.is_dead) received.tensor = Tensor();
  if (!received.is_dead) WEFT_RETURN_IF_ERROR(tensor_error);
  if (!received.is_dead && !received.tensor.IsInitialized())
    return Internal("RecvTensorResponse has no tensor");
  return received;
}

StatusOr<Payload> RecvTensorReply(const Tensor& tensor, bool is_dead) {
  Payload payload;
  Tensor value = tensor;
  if (is_dead) {
    WEFT_ASSIGN_OR_RETURN(value, Tensor::Zeros(DType::kFloat, Shape{0}));
  }
  WEFT_RETURN_IF_ERROR(
      AppendTensor(tensorflow::RecvTensorResponse::kTensorFieldNumber, value, &payload));
  if (is_dead) AppendVarint(tensorflow::RecvTensorResponse::kIsDeadFieldNumber, 1, &payload);
  if (payload.size() > std::numeric_limits<int32_t>::max()) return TooLarge(payload.size());
  return payload;
}

Status ParseMessage(absl::Span<const absl::string_view> chunks,
                    google::protobuf::MessageLite* message) {
  if (const size_t size = TotalSize(chunks); size > std::numeric_limits<int32_t>::max()) {
    return TooLarge(size);
  }
  ChunkStream stream(chunks);
  if (message->ParseFromZeroCopyStream(&stream)) return absl::OkStatus();
  return InvalidArgument("The request is not a ", message->GetTypeName());
}

Payload SerializeMessage(const google::protobuf::MessageLite& message) {
  return Payload(message.SerializeAsString());
}

Status AppendFetches(absl::Span<const std::string> names, absl::Span<const Tensor> tensors,
                     Payload* payload) {
  for (size_t i = 0; i < names.size(); ++i) {
    WEFT_RETURN_IF_ERROR(AppendNamedTensor(tensorflow::RunStepResponse::kTensorFieldNumber,
                                           names[i], tensors[i], payload));
  }
  if (payload->size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument(
        "The fetched tensors are over 2 GB together, fetch fewer at once; bytes: ",
        payload->size());
  }
  return absl::OkStatus();
}

}  // namespace weft::wire
