// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_environment.h"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "base/subprocess.h"
#include "platform/launch/expansion.h"
#include "platform/object/fields.h"
#include "platform/object/own_address.h"
#include "platform/pods/container_owner.h"
#include "platform/pods/pod_fields.h"
#include "platform/pods/process_plan.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

class Resolver {
 public:
  Resolver(ObjectStore* store, const Json& pod, const Json& container)
      : store_(store), pod_(pod), container_(container) {}

  StatusOr<std::vector<std::string>> Declared() {
    if (const Json* const sources = FindField(container_, {"envFrom"})) {
      for (const Json& source : sources->items()) WEFT_RETURN_IF_ERROR(AddAll(source));
    }
    if (const Json* const variables = FindField(container_, {"env"})) {
      for (const Json& variable : variables->items()) WEFT_RETURN_IF_ERROR(Add(variable));
    }
    return std::move(declared_);
  }

 private:
  // Nothing when it is optional and not there.
  StatusOr<std::optional<Json>> DataOf(const char* plural, const Json& reference) {
    const std::string name = StringField(reference, {"name"});
    const StatusOr<ObjectPtr> object =
        store_->Get(*FindResource("", plural), {NamespaceOf(pod_), name});
    if (!object.ok()) {
      if (IsObjectNotFound(object.status()) && BoolField(reference, {"optional"}))
        return std::optional<Json>();
      return object.status();
    }
    Json data = FindField(**object, {"data"}) == nullptr ? Json::MakeObject()
                                                         : *FindField(**object, {"data"});
    if (std::string(plural) == "secrets") {
      for (JsonMember& member : *data.mutable_members()) {
        std::string decoded;
        if (absl::Base64Unescape(member.value.AsString().value_or(""), &decoded))
          member.value = decoded;
      }
    }
    return std::optional<Json>(std::move(data));
  }

  Status AddAll(const Json& source) {
    const std::string prefix = StringField(source, {"prefix"});
    for (const auto& [field, plural] :
         {std::pair{"configMapRef", "configmaps"}, std::pair{"secretRef", "secrets"}}) {
      const Json* const reference = FindField(source, {field});
      if (reference == nullptr) continue;
      WEFT_ASSIGN_OR_RETURN(const std::optional<Json> data, DataOf(plural, *reference));
      if (!data.has_value()) continue;
      for (const JsonMember& member : data->members()) {
        SetEnvironment(&declared_, prefix + member.name, member.value.AsString().value_or(""));
      }
    }
    return absl::OkStatus();
  }

  Status Add(const Json& variable) {
    const std::string name = StringField(variable, {"name"});
    if (FindField(variable, {"valueFrom"}) == nullptr) {
      SetEnvironment(
          &declared_, name,
          ExpandVariables(StringField(variable, {"value"}), [&](const std::string& other) {
            return FindEnvironment(declared_, other);
          }));
      return absl::OkStatus();
    }
    for (const auto& [field, plural] :
         {std::pair{"configMapKeyRef", "configmaps"}, std::pair{"secretKeyRef", "secrets"}}) {
      const Json* const reference = FindField(variable, {"valueFrom", field});
      if (reference == nullptr) continue;
      WEFT_ASSIGN_OR_RETURN(const std::optional<Json> data, DataOf(plural, *reference));
      const std::string key = StringField(*reference, {"key"});
      const Json* const value = data.has_value() ? data->Find(key) : nullptr;
      if (value != nullptr) {
        SetEnvironment(&declared_, name, value->AsString().value_or(""));
      } else if (!BoolField(*reference, {"optional"})) {
        return NotFound("The variable ", name, " comes from ", plural, " '",
                        StringField(*reference, {"name"}), "', which has no key '", key, "'");
      }
      return absl::OkStatus();
    }
    if (const Json* const reference = FindField(variable, {"valueFrom", "resourceFieldRef"})) {
      WEFT_ASSIGN_OR_RETURN(const std::string value,
                            ResourceFieldText(pod_, container_, *reference));
      SetEnvironment(&declared_, name, value);
      return absl::OkStatus();
    }
    const std::string path = StringField(variable, {"valueFrom", "fieldRef", "fieldPath"});
    if (path.empty())
      return Unimplemented("The variable ", name, " has a source that is not known here");
    WEFT_ASSIGN_OR_RETURN(const std::string value, PodFieldText(pod_, path));
    SetEnvironment(&declared_, name, value);
    return absl::OkStatus();
  }

  ObjectStore* const store_;
  const Json& pod_;
  const Json& container_;
  std::vector<std::string> declared_;
};

}  // namespace

StatusOr<ContainerCommand> MakeContainerCommand(ObjectStore* store, const Json& pod,
                                                const Json& container,
                                                const std::vector<std::string>& inherited,
                                                ServiceAddresses* services) {
  ContainerCommand command;
  const Json* const words = FindField(container, {"command"});
  if (words == nullptr || words->size() == 0) {
    return InvalidArgument("There is no image on this machine to say what container '",
                           StringField(container, {"name"}), "' runs: write its command");
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<std::string> declared,
                        Resolver(store, pod, container).Declared());
  const int64_t in_a_row = PortsOfATask(FindEnvironment(declared, "WEFT_PROCESSES").value_or(""));
  const ServiceAddresses::ShortNames short_names = {
      NamespaceOf(pod),
      [store](const std::string& service, const std::string& space) {
        return store->Get(Services(), {space, service}).ok();
      },
      [store](const std::string& service, const std::string& space) -> std::string {
        const StatusOr<ObjectPtr> found = store->Get(Services(), {space, service});
        return found.ok() ? OwnAddressOfService(**found) : "";
      }};
  for (std::string& line : declared) {
    WEFT_ASSIGN_OR_RETURN(line, services->Rewrite(line, in_a_row, short_names));
  }
  for (const char* list : {"command", "args"}) {
    const Json* const items = FindField(container, {list});
    if (items == nullptr) continue;
    for (const Json& item : items->items()) {
      const std::string word =
          ExpandVariables(item.AsString().value_or(""),
                          [&](const std::string& name) { return FindEnvironment(declared, name); });
      WEFT_ASSIGN_OR_RETURN(std::string rewritten, services->Rewrite(word, in_a_row, short_names));
      command.argv.push_back(std::move(rewritten));
    }
  }
  command.environment = inherited;
  WEFT_ASSIGN_OR_RETURN(command.owner, OwnerOf(pod, container, &command.note));
  if (command.owner.has_value()) SetOwnerEnvironment(*command.owner, &command.environment);
  command.address = OwnAddressOfPod(pod);
  command.takes_input = BoolField(container, {"stdin"});
  command.ends_input = BoolField(container, {"stdinOnce"});
  command.has_terminal = BoolField(container, {"tty"});
  command.has_message_in_log =
      StringField(container, {"terminationMessagePolicy"}) == "FallbackToLogsOnError";
  SetEnvironment(&command.environment, "HOSTNAME", NameOf(pod));
  for (const std::string& line : declared) {
    const size_t equals = line.find('=');
    SetEnvironment(&command.environment, line.substr(0, equals), line.substr(equals + 1));
  }
  command.working_directory = StringField(container, {"workingDir"});
  return command;
}

}  // namespace weft::platform
