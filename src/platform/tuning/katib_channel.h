// SPDX-License-Identifier: Apache-2.0
// A way to one of Katib's services, over gRPC.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"

namespace weft::platform {

// Thread-safe; connects when it is first asked, and again when the service comes back.
class KatibChannel {
 public:
  // `address` is "host:port".
  explicit KatibChannel(const std::string& address);
  ~KatibChannel();
  KatibChannel(const KatibChannel&) = delete;
  KatibChannel& operator=(const KatibChannel&) = delete;

  // Blocks. `path` is "/api.v1.beta1.Suggestion/GetSuggestions". Errors are those of the service;
  // Unavailable and DeadlineExceeded where it is not there.
  StatusOr<std::string> Call(const std::string& path, const std::string& request,
                             absl::Duration timeout);

  template <typename Reply, typename Request>
  StatusOr<Reply> Ask(const std::string& path, const Request& request, absl::Duration timeout) {
    WEFT_ASSIGN_OR_RETURN(const std::string bytes,
                          Call(path, request.SerializeAsString(), timeout));
    Reply reply;
    if (!reply.ParseFromString(bytes)) return DataLoss("the answer to ", path, " makes no sense");
    return reply;
  }

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;  // keeps gRPC's headers in the .cc
};

}  // namespace weft::platform
