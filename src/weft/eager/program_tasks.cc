// SPDX-License-Identifier: Apache-2.0
#include "weft/eager/program_tasks.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/graph/device_name.h"
#include "weft/tensor/tensor_proto.h"
#include "weft/wire/step_messages.h"

namespace weft::eager {
namespace {

constexpr absl::Duration kFetchTimeout = absl::Seconds(60);

}  // namespace

Status ProgramTasks::Describe(uint64_t context, const tensorflow::ServerDef& server) {
  WEFT_RETURN_IF_ERROR(steps_.Describe(absl::StrCat(context), server));
  Begin(static_cast<int64_t>(context), context);
  return absl::OkStatus();
}

void ProgramTasks::Forget(uint64_t context) { steps_.Forget(absl::StrCat(context)); }

void ProgramTasks::Begin(int64_t step, uint64_t context) {
  steps_.Begin(step, absl::StrCat(context));
}

std::shared_ptr<cluster::TaskDirectory> ProgramTasks::TasksOf(uint64_t context) const {
  return steps_.TasksOf(absl::StrCat(context));
}

StatusOr<Tensor> ProgramTasks::Fetch(uint64_t context,
                                     const tensorflow::eager::RemoteTensorHandle& handle,
                                     Cancellation* cancellation) {
  WEFT_ASSIGN_OR_RETURN(const DeviceName place, DeviceName::Parse(handle.device()));
  const std::shared_ptr<cluster::TaskDirectory> tasks = TasksOf(context);
  if (tasks == nullptr || !place.job || !place.task)
    return InvalidArgument("No task of the program is at ", handle.device());
  tensorflow::eager::EnqueueRequest request;
  request.set_context_id(context);
  tensorflow::eager::Operation* const identity = request.add_queue()->mutable_operation();
  identity->set_id(-1);  // sent back and not kept
  identity->set_name("Identity");
  identity->set_device(handle.device());
  (*identity->mutable_attrs())["T"].set_type(handle.dtype());
  *identity->add_op_inputs()->mutable_remote_handle() = handle;
  tensorflow::eager::EnqueueResponse response;
  WEFT_RETURN_IF_ERROR(
      tasks->Ask({*place.job, *place.task}, "/tensorflow.eager.EagerService/Enqueue",
                 wire::SerializeMessage(request), kFetchTimeout, cancellation, &response));
  if (response.queue_response_size() != 1 || response.queue_response(0).tensor_size() != 1)
    return Internal("The task at ", handle.device(), " sent no tensor back");
  return TensorFromProto(response.queue_response(0).tensor(0));
}

}  // namespace weft::eager
