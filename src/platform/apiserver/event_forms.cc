// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/event_forms.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

struct FieldNames {
  const char* core;
  const char* newer;
};
constexpr FieldNames kRenamed[] = {{"involvedObject", "regarding"},
                                   {"message", "note"},
                                   {"source", "deprecatedSource"},
                                   {"firstTimestamp", "deprecatedFirstTimestamp"},
                                   {"lastTimestamp", "deprecatedLastTimestamp"},
                                   {"count", "deprecatedCount"},
                                   {"reportingComponent", "reportingController"}};
constexpr size_t kMostWord = 128;
constexpr size_t kMostNote = 1024;

bool IsNewer(const ResourceType& type) { return type.group == "events.k8s.io"; }

std::string CoreName(const std::string& name) {
  for (const FieldNames& names : kRenamed)
    if (name == names.newer) return names.core;
  return name;
}

// A mapping of an event's fields, whole or a part of them.
Json ToCore(const Json& event) {
  if (!event.is_object()) return event;
  Json core = Json::MakeObject();
  for (const JsonMember& member : event.members()) core.Set(CoreName(member.name), member.value);
  if (core.Find("apiVersion") != nullptr) core.Set("apiVersion", "v1");
  return core;
}

ObjectPtr ToNewer(const ObjectPtr& core) {
  auto newer = std::make_shared<Json>(Json::MakeObject());
  for (const JsonMember& member : core->members()) {
    std::string name = member.name;
    for (const FieldNames& names : kRenamed)
      if (name == names.core) name = names.newer;
    newer->Set(name, member.value);
  }
  newer->Set("apiVersion", "events.k8s.io/v1");
  return newer;
}

// "/note" becomes "/message".
Json PathToCore(const Json& path) {
  const std::string text = path.AsString().value_or("");
  const size_t end = text.find('/', 1);
  if (text.empty()) return path;
  const std::string rest = end == std::string::npos ? "" : text.substr(end);
  return absl::StrCat("/", CoreName(text.substr(1, end == std::string::npos ? end : end - 1)),
                      rest);
}

Json PatchToCore(const Json& patch) {
  if (!patch.is_array()) return ToCore(patch);
  Json operations = Json::MakeArray();
  for (const Json& operation : patch.items()) {
    Json core = operation;
    for (const char* const name : {"path", "from"})
      if (const Json* const path = operation.Find(name)) core.Set(name, PathToCore(*path));
    operations.Append(std::move(core));
  }
  return operations;
}

// "regarding.name=x" asks for involvedObject.name. After a backslash a comma is part of a value.
std::string SelectorToCore(const std::string& selector) {
  std::string core;
  size_t begin = 0;
  for (size_t i = 0; i <= selector.size(); ++i) {
    if (i < selector.size() && (selector[i] != ',' || (i > 0 && selector[i - 1] == '\\'))) continue;
    std::string part = selector.substr(begin, i - begin);
    const size_t end = part.find_first_of(".=!");
    const std::string name = part.substr(0, end);
    if (CoreName(name) != name) part = CoreName(name) + part.substr(name.size());
    absl::StrAppend(&core, begin == 0 ? "" : ",", part);
    begin = i + 1;
  }
  return core;
}

bool IsZero(const Json* field) {
  if (field == nullptr || field->is_null()) return true;
  if (field->is_object()) return field->size() == 0;
  return field->AsString().value_or("") == "" && field->AsInt().value_or(0) == 0;
}

// As a cluster reads an event of this form that is new. Core ones may have less.
Status CheckNew(const ResourceType& type, const Json& event) {
  std::vector<FieldCause> causes;
  for (const char* const name : {"reportingController", "reportingInstance", "action", "reason"}) {
    const std::string text = StringField(event, {name});
    if (text.empty()) {
      causes.push_back({name, "Required value", "FieldValueRequired"});
    } else if (text.size() > kMostWord && absl::string_view(name) != "reportingController") {
      causes.push_back(
          {name, absl::StrCat("Invalid value: \"\": can have at most ", kMostWord, " characters")});
    }
  }
  if (StringField(event, {"note"}).size() > kMostNote) {
    causes.push_back(
        {"note", absl::StrCat("Invalid value: \"\": can have at most ", kMostNote, " characters")});
  }
  if (StringField(event, {"eventTime"}).empty())
    causes.push_back({"eventTime", "Required value", "FieldValueRequired"});
  const std::string kind = StringField(event, {"type"});
  if (kind != "Normal" && kind != "Warning")
    causes.push_back({"type", absl::StrCat("Invalid value: \"\": has invalid value: ", kind)});
  for (const char* const name : {"deprecatedFirstTimestamp", "deprecatedLastTimestamp",
                                 "deprecatedCount", "deprecatedSource"}) {
    if (!IsZero(event.Find(name)))
      causes.push_back({name, "Invalid value: \"\": needs to be unset"});
  }
  return causes.empty() ? absl::OkStatus() : ObjectInvalid(type, NameOf(event), causes);
}

// An event that is not there is missed under the name that was asked for.
StatusOr<ObjectPtr> Translate(const ResourceType& type, const std::string& name,
                              const StatusOr<ObjectPtr>& core) {
  if (IsObjectNotFound(core.status()) && !name.empty()) return ObjectNotFound(type, name);
  if (!core.ok()) return core.status();
  return ToNewer(*core);
}

}  // namespace

StatusOr<ObjectPtr> EventForms::Get(const ResourceType& type, const ObjectName& name) {
  if (!IsNewer(type)) return below_->Get(type, name);
  return Translate(type, name.name, below_->Get(Events(), name));
}

StatusOr<ObjectList> EventForms::List(const ResourceType& type, const ListOptions& options) {
  if (!IsNewer(type)) return below_->List(type, options);
  ListOptions core = options;
  core.field_selector = SelectorToCore(options.field_selector);
  WEFT_ASSIGN_OR_RETURN(ObjectList list, below_->List(Events(), core));
  for (ObjectPtr& item : list.items) item = ToNewer(item);
  return list;
}

StatusOr<std::unique_ptr<Watch>> EventForms::StartWatch(const ResourceType& type,
                                                        const WatchOptions& options,
                                                        WatchSink sink) {
  if (!IsNewer(type)) return below_->StartWatch(type, options, std::move(sink));
  WatchOptions core = options;
  core.field_selector = SelectorToCore(options.field_selector);
  return below_->StartWatch(Events(), core, [sink = std::move(sink)](const WatchEvent& event) {
    WatchEvent newer = event;
    if (newer.object != nullptr) newer.object = ToNewer(newer.object);
    sink(newer);
  });
}

StatusOr<ObjectPtr> EventForms::Create(const ResourceType& type, const std::string& namespace_name,
                                       Json object, const WriteOptions& options) {
  if (!IsNewer(type)) return below_->Create(type, namespace_name, std::move(object), options);
  WEFT_RETURN_IF_ERROR(CheckNew(type, object));
  return Translate(type, "", below_->Create(Events(), namespace_name, ToCore(object), options));
}

StatusOr<ObjectPtr> EventForms::Update(const ResourceType& type, Json object,
                                       const WriteOptions& options) {
  if (!IsNewer(type)) return below_->Update(type, std::move(object), options);
  return Translate(type, NameOf(object), below_->Update(Events(), ToCore(object), options));
}

StatusOr<ObjectPtr> EventForms::Patch(const ResourceType& type, const ObjectName& name,
                                      PatchKind kind, const Json& patch,
                                      const WriteOptions& options) {
  if (!IsNewer(type)) return below_->Patch(type, name, kind, patch, options);
  return Translate(type, name.name,
                   below_->Patch(Events(), name, kind, PatchToCore(patch), options));
}

StatusOr<ObjectPtr> EventForms::Delete(const ResourceType& type, const ObjectName& name,
                                       const DeleteOptions& options) {
  if (!IsNewer(type)) return below_->Delete(type, name, options);
  return Translate(type, name.name, below_->Delete(Events(), name, options));
}

}  // namespace weft::platform
