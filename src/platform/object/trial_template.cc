// SPDX-License-Identifier: Apache-2.0
#include "platform/object/trial_template.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/go_template.h"

namespace weft::platform {
namespace {

constexpr char kPlaceholder[] = "${trialParameters.";
constexpr char kBeginMark[] = "--- metrics of this trial ---";
constexpr char kEndMark[] = "--- end of metrics ---";

// "${trialSpec.Name}" and its kin; `spec` is the template.
StatusOr<std::string> MetaValue(absl::string_view reference, const TrialIdentity& identity,
                                const Json& spec) {
  absl::string_view key = reference;
  absl::ConsumePrefix(&key, "${trialSpec.");
  absl::ConsumeSuffix(&key, "}");
  if (key == "Name") return identity.name;
  if (key == "Namespace") return identity.namespace_name;
  if (key == "Kind") return StringField(spec, {"kind"});
  if (key == "APIVersion") return StringField(spec, {"apiVersion"});
  for (const auto& [prefix, field] :
       {std::pair<absl::string_view, absl::string_view>{"Annotations[", "annotations"},
        {"Labels[", "labels"}}) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, prefix) || !absl::ConsumeSuffix(&name, "]")) continue;
    const Json* const all = FindField(spec, {"metadata", field});
    const Json* const value = all == nullptr ? nullptr : all->Find(name);
    if (value == nullptr)
      return InvalidArgument("trialParameters refer to ", reference,
                             ", which the template has not");
    return value->AsString();
  }
  return InvalidArgument("trialParameters refer to ", reference,
                         ": Name, Namespace, Kind, APIVersion, Annotations[..] and Labels[..] are "
                         "known");
}

using Replacements = std::vector<std::pair<std::string, std::string>>;

void ReplaceIn(const Replacements& replacements, Json* value) {
  if (value->is_string()) {
    const std::string text = value->AsString().value_or("");
    if (absl::StrContains(text, kPlaceholder)) *value = absl::StrReplaceAll(text, replacements);
  }
  if (Json::Array* const items = value->mutable_items()) {
    for (Json& item : *items) ReplaceIn(replacements, &item);
  }
  if (Json::Object* const members = value->mutable_members()) {
    for (JsonMember& member : *members) ReplaceIn(replacements, &member.value);
  }
}

StatusOr<Json> ReadObject(const std::string& text) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlOrJson(text, "the trial template"));
  if (documents.size() != 1 || !documents[0].is_object()) {
    return InvalidArgument("the trial template gives ", documents.size(),
                           " documents: one object is allowed");
  }
  return std::move(documents[0]);
}

StatusOr<Json> RenderPlaceholders(const TrialTemplate& trial_template, absl::string_view text,
                                  const TrialIdentity& identity, const Assignments& assignments) {
  Json spec = trial_template.spec;
  if (spec.is_null()) {
    WEFT_ASSIGN_OR_RETURN(spec, ReadObject(std::string(text)));
  }
  Replacements replacements;
  for (const auto& [name, reference] : trial_template.parameters) {
    const std::string place = absl::StrCat(kPlaceholder, name, "}");
    if (absl::StartsWith(reference, "${trialSpec.")) {
      WEFT_ASSIGN_OR_RETURN(std::string value, MetaValue(reference, identity, spec));
      replacements.emplace_back(place, std::move(value));
      continue;
    }
    const auto found =
        absl::c_find_if(assignments, [&](const auto& a) { return a.first == reference; });
    // One that a condition rules out is an empty text.
    replacements.emplace_back(place, found == assignments.end() ? "" : found->second);
  }
  if (trial_template.spec.is_null()) {
    WEFT_ASSIGN_OR_RETURN(spec, ReadObject(absl::StrReplaceAll(text, replacements)));
  } else {
    ReplaceIn(replacements, &spec);
  }
  const std::string rendered = spec.Dump();
  const size_t left = rendered.find(kPlaceholder);
  if (left != rendered.npos) {
    return InvalidArgument("the trial template holds ",
                           rendered.substr(left, rendered.find('}', left) + 1 - left),
                           ", which is not in spec.trialTemplate.trialParameters");
  }
  return spec;
}

StatusOr<Json> RenderGo(absl::string_view text, const TrialIdentity& identity,
                        const Assignments& assignments) {
  Json parameters = Json::MakeArray();
  for (const auto& [name, value] : assignments) {
    Json parameter;
    parameter.Set("Name", name);
    parameter.Set("Value", value);
    parameters.Append(std::move(parameter));
  }
  Json data;
  data.Set("Experiment", identity.experiment);
  data.Set("Trial", identity.name);
  data.Set("NameSpace", identity.namespace_name);
  data.Set("HyperParameters", std::move(parameters));
  WEFT_ASSIGN_OR_RETURN(const std::string rendered, RenderGoTemplate(text, data));
  return ReadObject(rendered);
}

void FindPodTemplates(Json* value, int depth, std::vector<Json*>* found) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest) return;
  if (Json::Array* const items = value->mutable_items()) {
    for (Json& item : *items) FindPodTemplates(&item, depth + 1, found);
  }
  Json::Object* const members = value->mutable_members();
  if (members == nullptr) return;
  for (JsonMember& member : *members) {
    const bool is_template =
        member.name == "template" && FindField(member.value, {"spec", "containers"}) != nullptr;
    if (is_template) {
      found->push_back(&member.value);
    } else {
      FindPodTemplates(&member.value, depth + 1, found);
    }
  }
}

void AddTrialLabels(const TrialIdentity& identity, Json* object) {
  SetField(object, {"metadata", "labels", kTrialLabel}, identity.name);
  SetField(object, {"metadata", "labels", kExperimentLabel}, identity.experiment);
}

// Single quotes around a word of a shell.
std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Runs "$@" as the shell's own child, which gets the signals that end the container.
constexpr char kRunProgram[] = R"("$@" & p=$!; trap 'kill -TERM $p' TERM INT; wait $p; c=$?; )"
                               R"(while kill -0 $p 2>/dev/null; do wait $p; c=$?; done; )";

}  // namespace

std::vector<Json*> PodTemplatesOf(Json* object) {
  std::vector<Json*> found;
  if (StringField(*object, {"kind"}) == "Pod") {
    found.push_back(object);
  } else {
    FindPodTemplates(object, 0, &found);
  }
  return found;
}

Json* PrimaryContainer(Json* pod_template, absl::string_view wanted) {
  Json* const spec = pod_template->FindMutable("spec");
  Json* const containers = spec == nullptr ? nullptr : spec->FindMutable("containers");
  Json::Array* const items = containers == nullptr ? nullptr : containers->mutable_items();
  if (items == nullptr) return nullptr;
  for (Json& container : *items) {
    const std::string name = StringField(container, {"name"});
    if (wanted.empty() ? items->size() == 1 || name == "tensorflow" : name == wanted)
      return &container;
  }
  return nullptr;
}

StatusOr<Json> MakeRunObject(const TrialTemplate& trial_template, absl::string_view text,
                             const TrialIdentity& identity, const Assignments& assignments) {
  const absl::string_view source = text.empty() ? trial_template.source : text;
  Json object;
  if (trial_template.is_go_template) {
    WEFT_ASSIGN_OR_RETURN(object, RenderGo(source, identity, assignments));
  } else {
    WEFT_ASSIGN_OR_RETURN(object,
                          RenderPlaceholders(trial_template, source, identity, assignments));
  }
  for (const char* field : {"apiVersion", "kind"}) {
    if (StringField(object, {field}).empty())
      return InvalidArgument("the trial template has no ", field);
  }
  SetField(&object, {"metadata", "name"}, identity.name);
  SetField(&object, {"metadata", "namespace"}, identity.namespace_name);
  AddTrialLabels(identity, &object);
  for (Json* const pod_template : PodTemplatesOf(&object)) AddTrialLabels(identity, pod_template);
  return object;
}

Status PrintFilesAtEnd(const MetricsCollector& collector, absl::string_view primary_container,
                       Json* object) {
  const bool is_file = collector.kind == MetricsCollector::Kind::kFile;
  if (!is_file && collector.kind != MetricsCollector::Kind::kTensorFlowEvent)
    return absl::OkStatus();
  const std::string path = ShellWord(collector.path);
  const std::string folder = is_file ? absl::StrCat("\"$(dirname ", path, ")\"") : path;
  const std::string print =
      is_file ? absl::StrCat("cat ", path)
              : absl::StrCat("find ", path, " -name '*tfevents*' -type f -exec sh -c ",
                             "'for f; do base64 \"$f\"; echo; done' sh {} +");
  const std::string script =
      absl::StrCat("mkdir -p ", folder, "; ", kRunProgram, "echo; echo '", kBeginMark, "'; ", print,
                   "; echo; echo '", kEndMark, "'; exit $c");
  bool has_container = false;
  for (Json* const pod_template : PodTemplatesOf(object)) {
    Json* const container = PrimaryContainer(pod_template, primary_container);
    if (container == nullptr) continue;
    has_container = true;
    const Json::Array& command = ListField(*container, {"command"});
    if (command.empty()) {
      return InvalidArgument("container '", StringField(*container, {"name"}),
                             "' has no command, which metrics of files need: write what the image "
                             "would run");
    }
    Json wrapped = Json(Json::Array{"sh", "-c", script, "sh"});
    for (const Json& word : command) wrapped.Append(word);
    for (const Json& word : ListField(*container, {"args"})) wrapped.Append(word);
    container->Erase("args");
    container->Set("command", std::move(wrapped));
  }
  if (has_container) return absl::OkStatus();
  return InvalidArgument("the trial template has no container '", primary_container,
                         "', which spec.trialTemplate.primaryContainerName names");
}

absl::string_view PrintedFiles(absl::string_view output) {
  const size_t begin = output.rfind(kBeginMark);
  if (begin == output.npos) return output;
  output.remove_prefix(begin + sizeof(kBeginMark) - 1);
  return output.substr(0, output.find(kEndMark));
}

}  // namespace weft::platform
