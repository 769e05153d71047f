// SPDX-License-Identifier: Apache-2.0
// Answers of the page that go on until whoever looks has gone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/http_server.h"
#include "net/json.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::platform {

// Its destructor ends it, and waits for that.
class PageStream {
 public:
  virtual ~PageStream() = default;
};

struct FeedRequest {
  std::vector<std::string> kinds;  // of FindRowKind
  std::string namespace_name;      // empty: all
  std::string experiment;          // trials of this one alone
  std::string object;              // events about this one alone
};

// A JSON object a line: {"kind": "jobs", "row": {..}} for each object that is there or changes,
// {"kind", "gone": key}, {"kind", "whole": true} when all that is there was sent, {"kind", "error",
// "code"} when a kind cannot be seen or the watch has broken off. InvalidArgument for other kinds.
StatusOr<std::unique_ptr<PageStream>> StartFeed(std::shared_ptr<KubernetesStore> store,
                                                const FeedRequest& request,
                                                std::shared_ptr<HttpReply> reply);

// The end of a container's log and what comes after it, as text.
std::unique_ptr<PageStream> StartLog(std::shared_ptr<KubernetesStore> store, const ObjectName& pod,
                                     const LogOptions& options, std::shared_ptr<HttpReply> reply);

// An error as the page reads it: {"error": text, "code": 403, "fields": [{"field", "message"}]}.
HttpResponse PageError(const Status& status);
HttpResponse PageAnswer(const Json& json);

}  // namespace weft::platform
