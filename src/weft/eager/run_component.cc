// SPDX-License-Identifier: Apache-2.0
// Parts of functions that a program has cut by devices, from their request to their answer.
#include <utility>

#include "weft/eager/eager_context.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::eager {

namespace proto = tensorflow::eager;

void EagerContext::RunComponent(const proto::RunComponentFunctionRequest& request,
                                Cancellation* caller, ComponentDone done) {
  const proto::Operation& operation = request.operation();
  // The part ends with who asks, and with the context.
  auto both = std::make_shared<Cancellation>(caller);  // shared with who cancels late
  StatusOr<Call> read = Read(operation, both.get());
  if (!read.ok()) return done(read.status());
  Cancellation::Token token = 0;
  if (!cancellation_.Register(&token,
                              [weak = std::weak_ptr<Cancellation>(both)](const Status& why) {
                                if (const auto alive = weak.lock()) alive->Cancel(why);
                              })) {
    return done(cancellation_.status());
  }
  environment_.tasks->Begin(operation.func_step_id(), id_);
  ComponentFunctions::Call call{.function = std::move(read->op),
                                .device = std::move(read->device),
                                .attrs = std::move(read->attrs),
                                .step = operation.func_step_id(),
                                .arguments = std::move(read->inputs),
                                .cancellation = std::move(both)};
  components_.Run(
      std::move(call),
      [this, token, op_id = operation.id(),
       ports = std::vector<int>(request.output_num().begin(), request.output_num().end()),
       done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
        cancellation_.Deregister(token);
        if (!results.ok()) return done(results.status());
        done(AnswerComponent(op_id, ports, *std::move(results)));
      });
}

StatusOr<proto::RunComponentFunctionResponse> EagerContext::AnswerComponent(
    int64_t op_id, const std::vector<int>& ports, std::vector<Tensor> results) {
  proto::RunComponentFunctionResponse response;
  if (op_id == kNotKept) {
    for (const Tensor& result : results)
      WEFT_RETURN_IF_ERROR(TensorToProto(result, response.add_tensor()));
    return response;
  }
  if (!ports.empty() && ports.size() != results.size())
    return InvalidArgument("Names for ", ports.size(), " results of ", results.size());
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < results.size(); ++i) {
    ShapeToProto(results[i].shape(), response.add_shape());
    tensors_[{op_id, ports.empty() ? static_cast<int>(i) : ports[i]}] = std::move(results[i]);
  }
  return response;
}

void EagerContext::CleanUp(int64_t step) {
  environment_.tasks->End(step);
  environment_.worker->AbortStep(step, Cancelled("The function's call is over"));
}

}  // namespace weft::eager
