// SPDX-License-Identifier: Apache-2.0
// The messages of a prediction, read and written without copies of their tensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "proto/serving/inference.pb.h"
#include "weft/wire/payload.h"
#include "weft/wire/tensor_wire.h"

namespace weft::wire {

// `rest` holds every field but the tensors. An entry of a map of tensors is on the wire what a
// NamedTensorProto is.
struct PredictMessage {
  tensorflow::serving::PredictRequest rest;
  std::vector<NamedTensor> inputs;
};
// InvalidArgument for a malformed message or tensor.
Status ParsePredict(absl::Span<const absl::string_view> chunks, PredictMessage* message);

// InvalidArgument for outputs that are over 2 GB together.
StatusOr<Payload> PredictReply(const tensorflow::serving::ModelSpec& spec,
                               const std::vector<std::pair<std::string, Tensor>>& outputs);

}  // namespace weft::wire
