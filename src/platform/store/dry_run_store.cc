// SPDX-License-Identifier: Apache-2.0
#include "platform/store/dry_run_store.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

WriteOptions AsDryRun(WriteOptions options) {
  options.is_dry_run = true;
  return options;
}

// " (Running)": the last of the conditions, where a status is written.
std::string StateIn(const Json& object) {
  const Json* const conditions = FindField(object, {"status", "conditions"});
  if (conditions == nullptr || conditions->size() == 0) return "";
  return absl::StrCat(" (", StringField(conditions->items().back(), {"type"}), ")");
}

std::string TakenKey(const ResourceType& type, const ObjectName& name) {
  return absl::StrCat(type.Id(), "/", name.namespace_name, "/", name.name);
}

}  // namespace

StatusOr<ObjectPtr> DryRunStore::Tell(const char* verb, const ResourceType& type,
                                      const ObjectName& name, const std::string& more,
                                      StatusOr<ObjectPtr> answer) const {
  tell_(absl::StrCat(verb, " ", type.singular, " ", name.namespace_name,
                     name.namespace_name.empty() ? "" : "/", name.name, more,
                     answer.ok() ? "" : absl::StrCat(": REFUSED: ", answer.status().message())));
  return answer;
}

StatusOr<ObjectPtr> DryRunStore::Create(const ResourceType& type, const std::string& namespace_name,
                                        Json object, const WriteOptions& options) {
  if (&type == &Events()) return std::make_shared<const Json>(std::move(object));
  const ObjectName name = {namespace_name, NameOf(object)};
  {
    absl::MutexLock lock(&mutex_);
    const auto taken = taken_.find(TakenKey(type, name));
    if (taken != taken_.end()) return taken->second;
  }
  return Tell("create", type, name, "",
              below_->Create(type, namespace_name, std::move(object), AsDryRun(options)));
}

StatusOr<ObjectPtr> DryRunStore::Update(const ResourceType& type, Json object,
                                        const WriteOptions& options) {
  const ObjectName name = {NamespaceOf(object), NameOf(object)};
  const bool is_status = options.subresource == "status";
  const std::string more = is_status ? StateIn(object) : "";
  return Tell(is_status ? "write the status of" : "change", type, name, more,
              below_->Update(type, std::move(object), AsDryRun(options)));
}

StatusOr<ObjectPtr> DryRunStore::Patch(const ResourceType& type, const ObjectName& name,
                                       PatchKind kind, const Json& patch,
                                       const WriteOptions& options) {
  if (&type == &Events()) return std::make_shared<const Json>(patch);
  const bool takes_over = FindField(patch, {"metadata", "ownerReferences"}) != nullptr;
  StatusOr<ObjectPtr> answer = below_->Patch(type, name, kind, patch, AsDryRun(options));
  if (takes_over && answer.ok()) {
    absl::MutexLock lock(&mutex_);
    taken_[TakenKey(type, name)] = *answer;
  }
  return Tell(takes_over ? "take over" : "change", type, name, "", std::move(answer));
}

StatusOr<ObjectPtr> DryRunStore::Delete(const ResourceType& type, const ObjectName& name,
                                        const DeleteOptions& options) {
  DeleteOptions dry = options;
  dry.is_dry_run = true;
  return Tell("delete", type, name, "", below_->Delete(type, name, dry));
}

}  // namespace weft::platform
