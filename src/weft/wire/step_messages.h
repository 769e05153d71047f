// SPDX-License-Identifier: Apache-2.0
// The messages of a step, read and written without copies of their tensors.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "proto/tensorflow/master.pb.h"
#include "proto/tensorflow/worker.pb.h"
#include "weft/wire/payload.h"
#include "weft/wire/tensor_wire.h"

namespace weft::wire {

// `rest` holds every field but the tensors. InvalidArgument for a malformed message; an error in a
// tensor comes only after the rest was read as far as it goes.
struct RunStepMessage {
  tensorflow::RunStepRequest rest;
  std::vector<NamedTensor> feeds;
};
Status ParseRunStep(absl::Span<const absl::string_view> chunks, RunStepMessage* message);

// A client's side of it.
struct RunStepReply {
  tensorflow::RunStepResponse rest;
  std::vector<NamedTensor> fetches;
};
Status ParseRunStepReply(absl::Span<const absl::string_view> chunks, RunStepReply* reply);

struct RunCallableMessage {
  tensorflow::RunCallableRequest rest;
  std::vector<Tensor> feeds;
};
Status ParseRunCallable(absl::Span<const absl::string_view> chunks, RunCallableMessage* message);

// CreateSessionRequest with the bytes of its graph kept apart.
struct CreateSessionMessage {
  tensorflow::CreateSessionRequest rest;
  std::string graph;
};
Status ParseCreateSession(absl::Span<const absl::string_view> chunks,
                          CreateSessionMessage* message);

// A worker's part of a step of TensorFlow's way.
struct RunGraphMessage {
  tensorflow::RunGraphRequest rest;
  std::vector<NamedTensor> sends;
};
Status ParseRunGraph(absl::Span<const absl::string_view> chunks, RunGraphMessage* message);

struct ReceivedTensor {
  Tensor tensor;  // without a value if dead
  bool is_dead = false;
};
StatusOr<ReceivedTensor> ParseRecvTensorReply(absl::Span<const absl::string_view> chunks);
StatusOr<Payload> RecvTensorReply(const Tensor& tensor, bool is_dead);

// Any other message. InvalidArgument naming its type.
Status ParseMessage(absl::Span<const absl::string_view> chunks,
                    google::protobuf::MessageLite* message);
Payload SerializeMessage(const google::protobuf::MessageLite& message);

// RunStepResponse of a step that succeeded: `names` and `tensors` by position.
Status AppendFetches(absl::Span<const std::string> names, absl::Span<const Tensor> tensors,
                     Payload* payload);

}  // namespace weft::wire
