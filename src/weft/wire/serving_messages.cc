// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/serving_messages.h"

#include <limits>

#include "weft/wire/split_message.h"

namespace weft::wire {

namespace serving = tensorflow::serving;

Status ParsePredict(absl::Span<const absl::string_view> chunks, PredictMessage* message) {
  std::string rest;
  Status tensor_error;
  const auto read = [&](google::protobuf::io::CodedInputStream* in, int size) -> Status {
    WEFT_ASSIGN_OR_RETURN(NamedTensor input, ReadNamedTensor(in, size));
    message->inputs.push_back(std::move(input));
    return absl::OkStatus();
  };
  const Status split =
      SplitMessage(chunks, serving::PredictRequest::kInputsFieldNumber, read, &rest, &tensor_error);
  if (!message->rest.ParseFromString(rest)) return InvalidArgument("PredictRequest is malformed");
  WEFT_RETURN_IF_ERROR(split);
  return tensor_error;
}

StatusOr<Payload> PredictReply(const serving::ModelSpec& spec,
                               const std::vector<std::pair<std::string, Tensor>>& outputs) {
  Payload payload;
  for (const auto& [name, tensor] : outputs) {
    WEFT_RETURN_IF_ERROR(
        AppendNamedTensor(serving::PredictResponse::kOutputsFieldNumber, name, tensor, &payload));
  }
  AppendBytes(serving::PredictResponse::kModelSpecFieldNumber, spec.SerializeAsString(), &payload);
  if (payload.size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("The outputs are over 2 GB together, ask for fewer; bytes: ",
                           payload.size());
  }
  return payload;
}

}  // namespace weft::wire
