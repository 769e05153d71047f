// SPDX-License-Identifier: Apache-2.0
#include "platform/object/model_server.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/container_checks.h"
#include "platform/object/fields.h"
#include "platform/object/pod_checks.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

constexpr int64_t kMostServers = 1000;
constexpr int64_t kMostSeconds = 86400;
constexpr int64_t kMost = int64_t{1} << 40;

// Written by the controller; a second value would be passed over.
constexpr const char* kOwnFlags[] = {"--port",
                                     "--rest_api_port",
                                     "--metrics_port",
                                     "--bind",
                                     "--model_name",
                                     "--model_base_path",
                                     "--model_config",
                                     "--model_config_file",
                                     "--enable_batching",
                                     "--batching_parameters",
                                     "--batching_parameters_file",
                                     "--tls_folder",
                                     "--token_file",
                                     "--ssl_config_file",
                                     "--insecure",
                                     "--drain"};

void ReadSeconds(FieldReader* reader, const char* name, int64_t least, absl::Duration* time) {
  int64_t seconds = absl::ToInt64Seconds(*time);
  reader->ReadInt(name, least, kMostSeconds, &seconds);
  *time = absl::Seconds(seconds);
}

void ReadPercent(FieldReader* reader, const char* name, Problems* problems, double* percent) {
  const Json* const value = reader->Find(name);
  if (value == nullptr) return;
  const double number = value->AsDouble().value_or(-1);
  if (value->is_number() && number >= 0 && number <= 100) {
    *percent = number;
  } else {
    problems->Add(*value, reader->PathOf(name),
                  HoldsButAllowed(*value, "a number from 0 to 100 is allowed"));
  }
}

// Whole numbers from `least` that ascend.
std::vector<int64_t> ReadNumbers(FieldReader* reader, const char* name, int64_t least,
                                 Problems* problems) {
  std::vector<int64_t> numbers;
  size_t index = 0;
  for (const Json& item : reader->ReadList(name)) {
    const std::string path = absl::StrCat(reader->PathOf(name), "[", index++, "]");
    const int64_t number = item.AsInt().value_or(-1);
    if (!item.is_int() || number < least) {
      problems->Add(
          item, path,
          HoldsButAllowed(item, absl::StrCat("a whole number from ", least, " on is allowed")));
    } else if (!numbers.empty() && number <= numbers.back()) {
      problems->Add(item, path,
                    HoldsButAllowed(item, absl::StrCat("more than the one before, ", numbers.back(),
                                                       ", is allowed")));
    } else {
      numbers.push_back(number);
    }
  }
  return numbers;
}

void ReadVersions(const Json& value, const std::string& path, Problems* problems,
                  ServedModel* model) {
  FieldReader reader(value, path, problems);
  reader.ReadBool("all", &model->has_all_versions);
  reader.ReadInt("latest", 1, 1000, &model->latest);
  model->versions = ReadNumbers(&reader, "specific", 0, problems);
  reader.Finish();
  const int said = (model->has_all_versions ? 1 : 0) + (model->versions.empty() ? 0 : 1) +
                   (reader.Find("latest") == nullptr ? 0 : 1);
  if (said > 1)
    problems->Add(value, path, "holds several, one of all, latest and specific is allowed");
}

void ReadLabels(const Json& value, const std::string& path, Problems* problems,
                ServedModel* model) {
  if (!value.is_object())
    return problems->Add(value, path, HoldsButAllowed(value, "labels with versions are allowed"));
  for (const JsonMember& member : value.members()) {
    if (!member.value.is_int() || member.value.AsInt().value_or(-1) < 0) {
      problems->Add(member.value, absl::StrCat(path, ".", member.name),
                    HoldsButAllowed(member.value, "the number of a version is allowed"));
      continue;
    }
    model->labels.emplace_back(member.name, *member.value.AsInt());
  }
}

void ReadModels(FieldReader* spec, Problems* problems, ModelServerSpec* server) {
  if (!spec->Require("models", "a list of name and basePath")) return;
  size_t index = 0;
  for (const Json& item : spec->ReadList("models")) {
    const std::string path = absl::StrCat(spec->PathOf("models"), "[", index++, "]");
    FieldReader reader(item, path, problems);
    ServedModel model;
    reader.Require("name", "by which clients ask");
    reader.ReadString("name", &model.name);
    reader.Require("basePath", "the folder of its versions");
    reader.ReadString("basePath", &model.base_path);
    if (const Json* const versions = reader.Find("versions"))
      ReadVersions(*versions, path + ".versions", problems, &model);
    if (const Json* const labels = reader.Find("labels"))
      ReadLabels(*labels, path + ".labels", problems, &model);
    reader.Finish();
    if (model.name.find_first_of("/:\"\\\n") != std::string::npos)
      problems->Invalid(item, path + ".name", model.name, "has none of / : \" \\");
    if (!model.base_path.empty() && model.base_path[0] != '/' &&
        !absl::StrContains(model.base_path, "://"))
      problems->Invalid(item, path + ".basePath", model.base_path,
                        "begins with / or with the scheme of a store, as s3://");
    for (const ServedModel& other : server->models) {
      if (other.name == model.name) problems->Duplicate(item, path + ".name", model.name);
    }
    server->models.push_back(std::move(model));
  }
  const Json* const list = spec->Find("models");
  if (list != nullptr && list->is_array() && list->size() == 0)
    problems->Add(*list, spec->PathOf("models"), "has no model");
}

void ReadBatching(const Json& value, Problems* problems, ModelServerSpec* server) {
  FieldReader reader(value, "spec.batching", problems);
  ServerBatching batching;
  reader.ReadInt("maxBatchSize", 1, kMost, &batching.max_batch_size);
  reader.ReadInt("timeoutMicros", 0, kMost, &batching.timeout_micros);
  reader.ReadInt("maxEnqueuedBatches", 1, kMost, &batching.max_enqueued);
  reader.ReadInt("threads", 1, 1024, &batching.threads);
  batching.allowed_sizes = ReadNumbers(&reader, "allowedSizes", 1, problems);
  reader.Finish();
  if (!batching.allowed_sizes.empty() && batching.max_batch_size > 0 &&
      batching.allowed_sizes.back() != batching.max_batch_size)
    problems->Invalid(value, "spec.batching.allowedSizes", batching.allowed_sizes.back(),
                      absl::StrCat("the last has to be maxBatchSize, ", batching.max_batch_size));
  server->batching = std::move(batching);
}

void ReadScaling(const Json& value, Problems* problems, ModelServerSpec* server) {
  FieldReader reader(value, "spec.autoscaling", problems);
  ServerScaling scaling;
  reader.ReadInt("minReplicas", 1, kMostServers, &scaling.least);
  reader.Require("maxReplicas", "the most servers");
  scaling.most = scaling.least;
  reader.ReadInt("maxReplicas", 1, kMostServers, &scaling.most);
  if (reader.Require("targetRequests", "how many requests shall wait or run at a server")) {
    const Json& target = *reader.Find("targetRequests");
    scaling.target = target.AsDouble().value_or(0);
    if (!target.is_number() || scaling.target <= 0)
      problems->Add(target, reader.PathOf("targetRequests"),
                    HoldsButAllowed(target, "a number above 0 is allowed"));
  }
  ReadSeconds(&reader, "periodSeconds", 1, &scaling.period);
  ReadSeconds(&reader, "scaleUpStabilizationSeconds", 0, &scaling.settle_up);
  ReadSeconds(&reader, "scaleDownStabilizationSeconds", 0, &scaling.settle_down);
  reader.Finish();
  if (scaling.most < scaling.least)
    problems->Invalid(value, "spec.autoscaling.maxReplicas", scaling.most,
                      absl::StrCat("must be minReplicas, ", scaling.least, ", at least"));
  server->scaling = scaling;
}

void ReadRollout(const Json& value, Problems* problems, ModelServerSpec* server) {
  FieldReader reader(value, "spec.rollout", problems);
  ServerRollout& rollout = server->rollout;
  if (const Json* const list = reader.Find("steps")) {
    const std::vector<int64_t> steps = ReadNumbers(&reader, "steps", 1, problems);
    if (!steps.empty()) rollout.steps = steps;
    if (list->is_array() && list->size() == steps.size() && (steps.empty() || steps.back() != 100))
      problems->Add(*list, "spec.rollout.steps", "ends elsewhere: the last step is 100 percent");
  }
  ReadSeconds(&reader, "stepSeconds", 0, &rollout.step);
  ReadSeconds(&reader, "deadlineSeconds", 1, &rollout.deadline);
  ReadPercent(&reader, "maxErrorPercent", problems, &rollout.most_errors);
  int64_t millis = 0;
  reader.ReadInt("maxLatencyMillis", 1, kMost, &millis);
  if (millis > 0) rollout.most_latency = absl::Milliseconds(millis);
  reader.ReadInt("minRequests", 0, kMost, &rollout.least_requests);
  reader.Finish();
}

// By the rules of a pod, at the places where its parts stand here.
void CheckParts(const ModelServerSpec& server, bool has_image, Problems* problems) {
  const TypeFacts* const of_container = FindTypeFacts("Container");
  const TypeFacts* const of_pod = FindTypeFacts("PodSpec");
  if (of_container == nullptr || of_pod == nullptr) return;
  if (!CheckFields(server.container, *of_container, "spec", problems) ||
      !CheckFields(server.pod, *of_pod, "spec", problems))
    return;
  CheckVolumes(server.pod, "spec", problems);
  CheckPlacement(server.pod, "spec", problems);
  CheckPodSecurity(server.pod, "spec", problems);
  ContainerChecks checks;
  checks.path = "spec";
  checks.needs_image = has_image;
  Json without = server.container;
  without.Erase("volumeMounts");
  CheckContainer(without, checks, problems);
  std::set<std::string> names;
  for (const Json& volume : ListField(server.pod, {"volumes"}))
    names.insert(StringField(volume, {"name"}));
  CheckVolumeMounts(server.container, "spec.volumeMounts", names, problems);
}

void ReadParts(const Json& value, FieldReader* spec, Problems* problems, ModelServerSpec* server) {
  server->container.set_position(value.position());
  server->container.Set("name", "server");
  for (const char* field : {"image", "command", "env", "resources", "volumeMounts"}) {
    if (const Json* const held = spec->Find(field)) server->container.Set(field, *held);
  }
  server->pod = Json::MakeObject();
  for (const char* field : {"volumes", "nodeSelector", "tolerations", "imagePullSecrets",
                            "serviceAccountName", "securityContext", "affinity"}) {
    if (const Json* const held = spec->Find(field)) server->pod.Set(field, *held);
  }
  CheckParts(*server, spec->Require("image", "that has weft"), problems);
}

void ReadFlags(FieldReader* spec, Problems* problems, ModelServerSpec* server) {
  spec->ReadStrings("flags", &server->flags);
  for (size_t i = 0; i < server->flags.size(); ++i) {
    const std::string name = server->flags[i].substr(0, server->flags[i].find('='));
    const std::string path = absl::StrCat("spec.flags[", i, "]");
    if (!absl::StartsWith(name, "--")) {
      problems->Add(*spec->Find("flags"), path,
                    HoldsButAllowed(Json(server->flags[i]), "--NAME=VALUE is allowed"));
    } else if (std::find(std::begin(kOwnFlags), std::end(kOwnFlags), name) != std::end(kOwnFlags)) {
      problems->Add(*spec->Find("flags"), path,
                    absl::StrCat("holds ", name, ", which other fields of the spec decide"));
    }
  }
}

// As `weft serve` itself: others than the pod reach its ports.
void ReadSecurity(const Json& value, FieldReader* spec, Problems* problems,
                  ModelServerSpec* server) {
  bool is_insecure = false;
  spec->ReadString("tlsSecret", &server->tls_secret);
  spec->ReadString("tokenSecret", &server->token_secret);
  spec->ReadBool("insecure", &is_insecure);
  const bool is_secure = !server->tls_secret.empty() && !server->token_secret.empty();
  if (!is_secure && !is_insecure) {
    problems->Required(value, "spec.tlsSecret",
                       "with tokenSecret: who may ask; or insecure: true inside a private network");
  } else if (is_insecure && !server->tls_secret.empty()) {
    problems->Invalid(value, "spec.insecure", true, "may not stand beside tlsSecret");
  }
}

void ParseSpec(const Json& value, Problems* problems, ModelServerSpec* server) {
  FieldReader spec(value, "spec", problems);
  ReadModels(&spec, problems, server);
  ReadParts(value, &spec, problems, server);
  ReadFlags(&spec, problems, server);
  ReadSecurity(value, &spec, problems, server);
  spec.ReadInt("replicas", 0, kMostServers, &server->replicas);
  spec.ReadInt("threads", 1, 1024, &server->threads);
  spec.ReadString("memoryLimit", &server->memory_limit);
  spec.ReadInt("drainSeconds", 0, 600, &server->drain_seconds);
  if (const Json* const held = spec.Find("batching")) ReadBatching(*held, problems, server);
  if (const Json* const held = spec.Find("autoscaling")) ReadScaling(*held, problems, server);
  if (const Json* const held = spec.Find("rollout")) ReadRollout(*held, problems, server);
  spec.Finish();
}

}  // namespace

ModelServerSpec ParseModelServer(const Json& object, Problems* problems) {
  ModelServerSpec server;
  server.name = NameOf(object);
  FieldReader reader(object, "", problems);
  reader.Accept({"apiVersion", "kind", "metadata", "status"});
  if (reader.Require("spec", "with models and image"))
    ParseSpec(*reader.Find("spec"), problems, &server);
  reader.Finish();
  return server;
}

}  // namespace weft::platform
