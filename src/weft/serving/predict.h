// SPDX-License-Identifier: Apache-2.0
// Tensors in, tensors out: a call of one signature.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "weft/serving/model_version.h"
#include "weft/tensor/tensor.h"

namespace weft::serving {

inline constexpr char kDefaultSignature[] = "serving_default";

// How long an answer may take, and who no longer wants it.
struct CallLimits {
  absl::Duration timeout = absl::InfiniteDuration();
  Cancellation* cancellation = nullptr;  // may be null; outlives `done`
};

struct PredictAsk {
  std::string signature;  // empty: kDefaultSignature
  std::map<std::string, Tensor> inputs;
  std::vector<std::string> output_filter;  // empty: all outputs
  CallLimits limits;
};
// By the signature's names.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using PredictDone = absl::AnyInvocable<void(StatusOr<NamedTensors>)>;

// The signature of that name, or the default one for "". FailedPrecondition names it and those that
// there are.
StatusOr<const train::Signature*> FindSignature(const ModelVersion& model, const std::string& name);

// `done` runs once, maybe before this returns, and holds `model` until then. InvalidArgument names
// the input that is missing, not known, or of another dtype or shape than the signature says.
void Predict(std::shared_ptr<const ModelVersion> model, PredictAsk ask, PredictDone done);

}  // namespace weft::serving
