// SPDX-License-Identifier: Apache-2.0
// One request to the API server, read.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/http_server.h"
#include "platform/apiserver/request_path.h"
#include "platform/apiserver/table.h"
#include "platform/store/object_store.h"

namespace weft::platform {

enum class AnswerForm { kObject, kTable, kMetadata };

struct ApiRequest {
  HttpRequest http;
  std::map<std::string, std::string> query;
  RequestPath path;
  AnswerForm form = AnswerForm::kObject;
  RowObject row_object = RowObject::kMetadata;

  std::string Query(const std::string& name) const;
  // As a cluster reads it: whatever is there but for "0" and "false". Python's clients say "True".
  bool Flag(const std::string& name) const;
  bool IsWatch() const { return Flag("watch"); }
};

// 406 when the Accept header names nothing that is spoken here, 400 for parameters that make no
// sense.
StatusOr<ApiRequest> ReadApiRequest(HttpRequest http);
// The form that the client likes best of those that are known.
StatusOr<AnswerForm> ChooseAnswerForm(absl::string_view accept);

// The body as JSON, YAML or protobuf; 415 for other media types. `may_be_empty`: then an empty
// mapping.
StatusOr<Json> ReadBody(const HttpRequest& http, bool may_be_empty);
StatusOr<WriteOptions> ReadWriteOptions(const ApiRequest& request);
StatusOr<DeleteOptions> ReadDeleteOptions(const ApiRequest& request);
StatusOr<ListOptions> ReadListOptions(const ApiRequest& request);
// 415 with what is known for other media types.
StatusOr<PatchKind> ReadPatchKind(const ApiRequest& request);

// In the version that was asked for.
ObjectPtr InVersion(const ApiRequest& request, const ObjectPtr& object);
Json AnswerObject(const ApiRequest& request, const ObjectPtr& object, absl::Time now);
Json AnswerList(const ApiRequest& request, const ObjectList& list, absl::Time now);

}  // namespace weft::platform
