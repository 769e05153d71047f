// SPDX-License-Identifier: Apache-2.0
// What the files of Katib's calls share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "platform/tuning/katib_calls.h"

namespace weft::platform {

// A call of typed messages.
template <typename Request, typename Reply>
KatibCall CallOf(std::function<StatusOr<Reply>(const Request&)> answer) {
  return [answer = std::move(answer)](absl::string_view bytes) -> StatusOr<std::string> {
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return InvalidArgument("the request is no ", request.GetTypeName());
    WEFT_ASSIGN_OR_RETURN(const Reply reply, answer(request));
    return reply.SerializeAsString();
  };
}

// In whatever namespace it is; NotFound unless there is exactly one of that name.
StatusOr<ObjectPtr> FindTrial(ObjectStore* store, const std::string& name);

// Those of Katib's EarlyStopping. What trials have reported is asked of the database that a request
// names, else of the store, which may be null; trials are marked as stopped in the store alone.
void AddEarlyStoppingCalls(ObjectStore* store, std::map<std::string, KatibCall>* calls);

}  // namespace weft::platform
