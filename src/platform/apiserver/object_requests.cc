// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/object_requests.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

class Answerer {
 public:
  Answerer(ObjectStore* store, const Clock& clock, const ApiRequest& request)
      : store_(store),
        clock_(clock),
        request_(request),
        path_(request.path),
        type_(*request.path.type) {}

  StatusOr<HttpResponse> Answer() {
    const std::string& method = request_.http.method;
    if (path_.subresource == "scale") return AnswerScale();
    if (path_.subresource == "binding") return method == "POST" ? Bind() : NotAllowed();
    if (path_.name.empty()) {
      if (method == "GET") return List();
      if (method == "POST") return Create();
      if (method == "DELETE") return DeleteCollection();
      return NotAllowed();
    }
    if (method == "GET") return Get();
    if (method == "PUT") return Update();
    if (method == "PATCH") return Patch();
    if (method == "DELETE" && path_.subresource.empty()) return Delete();
    return NotAllowed();
  }

 private:
  ObjectName Name() const { return {path_.namespace_name, path_.name}; }

  HttpResponse Object(const ObjectPtr& object, int status = 200) const {
    return JsonResponse(status, AnswerObject(request_, object, clock_.Now()));
  }

  static Status NotAllowed() {
    return ApiError(405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
  }

  StatusOr<HttpResponse> Get() {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr object, store_->Get(type_, Name()));
    return Object(object);
  }

  StatusOr<HttpResponse> List() {
    WEFT_ASSIGN_OR_RETURN(const ListOptions options, ReadListOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const ObjectList list, store_->List(type_, options));
    return JsonResponse(200, AnswerList(request_, list, clock_.Now()));
  }

  // The object in the body, which must be of the path's type, namespace and name.
  StatusOr<Json> ReadObject() {
    WEFT_ASSIGN_OR_RETURN(Json object, ReadBody(request_.http, false));
    const std::string api_version =
        type_.group.empty() ? path_.version : absl::StrCat(type_.group, "/", path_.version);
    const std::string given = StringField(object, {"apiVersion"});
    const std::string kind = StringField(object, {"kind"});
    if ((!given.empty() && given != api_version) || (!kind.empty() && kind != type_.kind)) {
      return ApiError(400, "BadRequest",
                      absl::StrCat("the object is a ", kind, " of ", given, ", expected was a ",
                                   type_.kind, " of ", api_version));
    }
    object.Set("apiVersion", api_version);
    object.Set("kind", type_.kind);
    const std::string space = NamespaceOf(object);
    if (type_.is_namespaced && !space.empty() && space != path_.namespace_name) {
      return ApiError(400, "BadRequest",
                      "the namespace of the provided object does not match the namespace sent on "
                      "the request");
    }
    if (!path_.name.empty()) {
      const std::string name = NameOf(object);
      if (!name.empty() && name != path_.name) {
        return ApiError(400, "BadRequest",
                        absl::StrCat("the name of the object (", name,
                                     ") does not match the name on the URL (", path_.name, ")"));
      }
      SetField(&object, {"metadata", "name"}, path_.name);
      if (type_.is_namespaced) SetField(&object, {"metadata", "namespace"}, path_.namespace_name);
    }
    return object;
  }

  StatusOr<HttpResponse> Create() {
    if (type_.is_namespaced && path_.namespace_name.empty()) return NotAllowed();
    WEFT_ASSIGN_OR_RETURN(Json object, ReadObject());
    WEFT_ASSIGN_OR_RETURN(const WriteOptions options, ReadWriteOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr created,
                          store_->Create(type_, path_.namespace_name, std::move(object), options));
    return Object(created, 201);
  }

  StatusOr<HttpResponse> Update() {
    WEFT_ASSIGN_OR_RETURN(Json object, ReadObject());
    WEFT_ASSIGN_OR_RETURN(const WriteOptions options, ReadWriteOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr updated,
                          store_->Update(type_, std::move(object), options));
    return Object(updated);
  }

  StatusOr<HttpResponse> Patch() {
    WEFT_ASSIGN_OR_RETURN(const PatchKind kind, ReadPatchKind(request_));
    WEFT_ASSIGN_OR_RETURN(const Json patch, ReadBody(request_.http, false));
    WEFT_ASSIGN_OR_RETURN(const WriteOptions options, ReadWriteOptions(request_));
    if (kind == PatchKind::kApply) return Apply(patch, options);
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr patched,
                          store_->Patch(type_, Name(), kind, patch, options));
    return Object(patched);
  }

  StatusOr<HttpResponse> Apply(Json wanted, const WriteOptions& options) {
    if (request_.Query("fieldManager").empty()) {
      return ApiError(422, "Invalid",
                      "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
                      "required for apply patch");
    }
    if (StringField(wanted, {"kind"}) != type_.kind || NameOf(wanted) != path_.name) {
      return ApiError(400, "BadRequest",
                      absl::StrCat("the applied object has to be the ", type_.kind, " '",
                                   path_.name, "' that the path names"));
    }
    const bool is_new = IsObjectNotFound(store_->Get(type_, Name()).status());
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr applied,
                          store_->Patch(type_, Name(), PatchKind::kApply, wanted, options));
    return Object(applied, is_new ? 201 : 200);
  }

  StatusOr<HttpResponse> Delete() {
    WEFT_ASSIGN_OR_RETURN(const DeleteOptions options, ReadDeleteOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr last, store_->Delete(type_, Name(), options));
    if (IsTerminating(*last)) return Object(last);
    Json status;
    status.Set("kind", "Status");
    status.Set("apiVersion", "v1");
    status.Set("metadata", Json::MakeObject());
    status.Set("status", "Success");
    SetField(&status, {"details", "name"}, path_.name);
    if (!type_.group.empty()) SetField(&status, {"details", "group"}, type_.group);
    SetField(&status, {"details", "kind"}, type_.plural);
    SetField(&status, {"details", "uid"}, UidOf(*last));
    return JsonResponse(200, status);
  }

  StatusOr<HttpResponse> DeleteCollection() {
    WEFT_ASSIGN_OR_RETURN(const ListOptions list_options, ReadListOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const DeleteOptions options, ReadDeleteOptions(request_));
    WEFT_ASSIGN_OR_RETURN(const ObjectList list, store_->List(type_, list_options));
    for (const ObjectPtr& item : list.items) {
      const Status status =
          store_->Delete(type_, {NamespaceOf(*item), NameOf(*item)}, options).status();
      if (!status.ok() && !IsObjectNotFound(status)) return status;
    }
    return JsonResponse(200, AnswerList(request_, list, clock_.Now()));
  }

  StatusOr<HttpResponse> Bind() {
    WEFT_ASSIGN_OR_RETURN(const Json binding, ReadBody(request_.http, false));
    const std::string node = StringField(binding, {"target", "name"});
    if (node.empty())
      return ApiError(400, "BadRequest", "the binding names no node: target.name is missing");
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod, store_->Get(type_, Name()));
    if (!StringField(*pod, {"spec", "nodeName"}).empty()) {
      return ObjectConflict(type_, path_.name, "it is bound to a node already");
    }
    Json bound = *pod;
    SetField(&bound, {"spec", "nodeName"}, node);
    WriteOptions options;
    options.subresource = "binding";
    WEFT_RETURN_IF_ERROR(store_->Update(type_, std::move(bound), options).status());
    Json status;
    status.Set("kind", "Status");
    status.Set("apiVersion", "v1");
    status.Set("status", "Success");
    return JsonResponse(201, status);
  }

  // ".spec.a.b" as the fields that a merge patch sets.
  static Json PatchOf(const std::string& path, Json value) {
    const std::vector<std::string> parts = absl::StrSplit(path, '.', absl::SkipEmpty());
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      Json outer;
      outer.Set(*part, std::move(value));
      value = std::move(outer);
    }
    return value;
  }

  // `path` as the object writes it: a TFJob's replica types may be in any case.
  static std::string PathIn(const Json& object, const std::string& path) {
    std::string found;
    const Json* holder = &object;
    for (const absl::string_view part : absl::StrSplit(path, '.', absl::SkipEmpty())) {
      std::string name(part);
      if (holder != nullptr && holder->is_object() && holder->Find(name) == nullptr) {
        for (const JsonMember& member : holder->members())
          if (absl::EqualsIgnoreCase(member.name, part)) name = member.name;
      }
      holder = holder != nullptr && holder->is_object() ? holder->Find(name) : nullptr;
      absl::StrAppend(&found, ".", name);
    }
    return found;
  }

  HttpResponse Scale(const Json& object) const {
    Json scale;
    scale.Set("kind", "Scale");
    scale.Set("apiVersion", "autoscaling/v1");
    for (const char* name : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
      if (const Json* const value = FindField(object, {"metadata", name})) {
        SetField(&scale, {"metadata", name}, *value);
      }
    }
    const auto number = [&](const std::string& path) -> int64_t {
      const Json* const value = FindByJsonPath(object, PathIn(object, path));
      return value == nullptr ? 0 : value->AsInt().value_or(0);
    };
    SetField(&scale, {"spec", "replicas"}, number(type_.scale_path));
    SetField(&scale, {"status", "replicas"}, number(type_.scale_status_path));
    return JsonResponse(200, scale);
  }

  StatusOr<HttpResponse> AnswerScale() {
    const std::string& method = request_.http.method;
    if (method == "GET") {
      WEFT_ASSIGN_OR_RETURN(const ObjectPtr object, store_->Get(type_, Name()));
      return Scale(*object);
    }
    if (method != "PUT" && method != "PATCH") return NotAllowed();
    WEFT_ASSIGN_OR_RETURN(const Json body, ReadBody(request_.http, false));
    WEFT_ASSIGN_OR_RETURN(WriteOptions options, ReadWriteOptions(request_));
    options.subresource.clear();
    int64_t replicas = IntField(body, {"spec", "replicas"}, -1);
    if (body.is_array()) {
      for (const Json& operation : body.items()) {
        if (StringField(operation, {"path"}) == "/spec/replicas")
          replicas = IntField(operation, {"value"}, -1);
      }
    }
    if (replicas < 0) {
      return ObjectInvalid(type_, path_.name,
                           {{"spec.replicas", "missing or below 0: 0 and more is allowed"}});
    }
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr live, store_->Get(type_, Name()));
    Json patch = PatchOf(PathIn(*live, type_.scale_path), replicas);
    if (const std::string revision = RevisionOf(body); !revision.empty()) {
      SetField(&patch, {"metadata", "resourceVersion"}, revision);
    }
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr object,
                          store_->Patch(type_, Name(), PatchKind::kMerge, patch, options));
    return Scale(*object);
  }

  ObjectStore* const store_;
  const Clock& clock_;
  const ApiRequest& request_;
  const RequestPath& path_;
  const ResourceType& type_;
};

}  // namespace

HttpResponse JsonResponse(int status, const Json& body) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = body.Dump();
  response.body.push_back('\n');
  return response;
}

HttpResponse ErrorResponse(const Status& error) {
  return JsonResponse(HttpCodeOf(error), StatusObject(error));
}

StatusOr<HttpResponse> AnswerObjectRequest(ObjectStore* store, const Clock& clock,
                                           const ApiRequest& request) {
  return Answerer(store, clock, request).Answer();
}

}  // namespace weft::platform
