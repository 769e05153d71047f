// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_actions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "net/yaml.h"
#include "platform/object/experiment.h"
#include "platform/object/fields.h"
#include "platform/object/trial_template.h"
#include "platform/search/early_stopping.h"
#include "platform/search/experiment_study.h"
#include "platform/store/api_error.h"
#include "platform/tuning/trial_view.h"
#include "platform/tuning/tuning_types.h"

namespace weft::platform {
namespace {

constexpr char kManager[] = "weft-page";

struct Right {
  const char* name;
  const char* verb;
  const char* group;
  const char* resource;
};
constexpr Right kRights[] = {{"see jobs", "list", "kubeflow.org", "tfjobs"},
                             {"create experiments", "create", "kubeflow.org", "experiments"},
                             {"delete experiments", "delete", "kubeflow.org", "experiments"},
                             {"create trials", "create", "kubeflow.org", "trials"},
                             {"stop trials", "patch", "kubeflow.org", "trials"},
                             {"delete trials", "delete", "kubeflow.org", "trials"},
                             {"suspend jobs", "patch", "kubeflow.org", "tfjobs"},
                             {"delete jobs", "delete", "kubeflow.org", "tfjobs"}};

StatusOr<bool> IsAllowed(KubernetesStore* store, const Right& right,
                         const std::string& namespace_name) {
  static const auto& type = *new ResourceType(
      MakeResourceType("authorization.k8s.io", "v1", "selfsubjectaccessreviews",
                       "selfsubjectaccessreview", "SelfSubjectAccessReview", false));
  Json review;
  for (const auto& [field, value] : {std::pair{"verb", right.verb},
                                     {"group", right.group},
                                     {"resource", right.resource},
                                     {"namespace", namespace_name.c_str()}}) {
    if (value[0] != '\0') SetField(&review, {"spec", "resourceAttributes", field}, value);
  }
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr answer, store->Create(type, "", std::move(review), {}));
  return BoolField(*answer, {"status", "allowed"});
}

// Kinds that the page deals with, and the version that the object is written in.
StatusOr<ResourceType> TypeOf(const std::string& group, const std::string& kind) {
  for (const ResourceType* const type :
       {&Experiments(), &Trials(), &Suggestions(), &TfJobs(), &Tensorflows()}) {
    if (type->kind == kind && (group.empty() || type->group == group)) return *type;
  }
  return InvalidArgument("The page deals with kinds Experiment, Trial, TFJob and Tensorflow, not '",
                         kind, "': kubectl apply takes the rest");
}

// What the controller would refuse later.
Status CheckExperiment(const Json& object) {
  Problems problems("experiment.yaml");
  const Experiment experiment = ParseExperiment(object, &problems);
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  if (experiment.early_stopping.has_value())
    WEFT_RETURN_IF_ERROR(CheckEarlyStopping(*experiment.early_stopping));
  return StudyOf(experiment).status();
}

struct Wanted {
  ResourceType type;
  std::string namespace_name;
  Json object;
};

StatusOr<Wanted> ReadWanted(Json object, const std::string& namespace_name) {
  const GroupVersion version = SplitApiVersion(StringField(object, {"apiVersion"}));
  const std::string kind = StringField(object, {"kind"});
  if (kind.empty() || version.version.empty())
    return InvalidArgument(
        "apiVersion and kind are needed, as in\napiVersion: kubeflow.org/v1beta1\n",
        "kind: Experiment");
  Wanted wanted;
  WEFT_ASSIGN_OR_RETURN(wanted.type, TypeOf(version.group, kind));
  if (wanted.type.Serves(version.version)) wanted.type.version = version.version;
  wanted.namespace_name = NamespaceOf(object);
  if (wanted.namespace_name.empty()) wanted.namespace_name = namespace_name;
  if (wanted.namespace_name.empty()) wanted.namespace_name = "default";
  if (wanted.type == Experiments()) WEFT_RETURN_IF_ERROR(CheckExperiment(object));
  wanted.object = std::move(object);
  return wanted;
}

}  // namespace

StatusOr<Json> WhoIs(KubernetesStore* store, const std::string& namespace_name) {
  static const auto& type =
      *new ResourceType(MakeResourceType("authentication.k8s.io", "v1", "selfsubjectreviews",
                                         "selfsubjectreview", "SelfSubjectReview", false));
  Json answer;
  const StatusOr<ObjectPtr> review = store->Create(type, "", Json::MakeObject(), {});
  // Servers before 1.28 do not say it; the key counts all the same.
  if (!review.ok() && HttpCodeOf(review.status()) != 404) return review.status();
  if (review.ok()) answer.Set("user", StringField(**review, {"status", "userInfo", "username"}));
  Json rights;
  for (const Right& right : kRights) {
    WEFT_ASSIGN_OR_RETURN(const bool is_allowed, IsAllowed(store, right, namespace_name));
    rights.Set(right.name, is_allowed);
  }
  answer.Set("rights", std::move(rights));
  return answer;
}

StatusOr<Json> CreateObjects(KubernetesStore* store, const std::string& text,
                             const std::string& namespace_name, bool is_dry_run) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlOrJson(text, "experiment.yaml"));
  if (documents.empty()) return InvalidArgument("There is nothing in the text");
  std::vector<Wanted> all;
  for (Json& document : documents) {
    WEFT_ASSIGN_OR_RETURN(Wanted wanted, ReadWanted(std::move(document), namespace_name));
    all.push_back(std::move(wanted));
  }
  WriteOptions options;
  options.field_manager = kManager;
  options.is_dry_run = true;
  for (const Wanted& wanted : all)
    WEFT_RETURN_IF_ERROR(
        store->Create(wanted.type, wanted.namespace_name, wanted.object, options).status());
  Json objects = Json::MakeArray();
  options.is_dry_run = false;
  for (Wanted& wanted : all) {
    Json made;
    made.Set("kind", wanted.type.kind);
    made.Set("namespace", wanted.namespace_name);
    made.Set("name", NameOf(wanted.object));
    if (!is_dry_run) {
      WEFT_ASSIGN_OR_RETURN(const ObjectPtr kept, store->Create(wanted.type, wanted.namespace_name,
                                                                std::move(wanted.object), options));
      made.Set("name", NameOf(*kept));
    }
    objects.Append(std::move(made));
  }
  Json answer;
  answer.Set("objects", std::move(objects));
  return answer;
}

Status StopTrial(KubernetesStore* store, const ObjectName& name) {
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr trial, store->Get(Trials(), name));
  if (TrialView(*trial).is_over())
    return FailedPrecondition("Trial '", name.name, "' is over already");
  Json patch;
  SetField(&patch, {"metadata", "annotations", kStopAnnotation}, "true");
  WriteOptions options;
  options.field_manager = kManager;
  return store->Patch(Trials(), name, PatchKind::kMerge, patch, options).status();
}

Status SuspendJob(KubernetesStore* store, const std::string& kind, const ObjectName& name,
                  bool is_suspended) {
  WEFT_ASSIGN_OR_RETURN(const ResourceType type, TypeOf("", kind));
  if (!IsJob(type)) return InvalidArgument("A ", kind, " cannot be suspended: jobs can");
  Json patch;
  if (type == TfJobs()) {
    SetField(&patch, {"spec", "runPolicy", "suspend"}, is_suspended);
  } else {
    SetField(&patch, {"spec", "suspend"}, is_suspended);
  }
  WriteOptions options;
  options.field_manager = kManager;
  return store->Patch(type, name, PatchKind::kMerge, patch, options).status();
}

Status DeleteObject(KubernetesStore* store, const std::string& kind, const ObjectName& name,
                    const std::string& uid) {
  WEFT_ASSIGN_OR_RETURN(const ResourceType type, TypeOf("", kind));
  if (name.name.empty()) return InvalidArgument("A name is needed");
  DeleteOptions options;
  options.uid = uid;
  return store->Delete(type, name, options).status();
}

StatusOr<std::string> ObjectText(KubernetesStore* store, const std::string& kind,
                                 const ObjectName& name, bool is_copy) {
  ResourceType type = Pods();
  if (kind == "Node") {
    type = Nodes();
  } else if (kind != "Pod") {
    WEFT_ASSIGN_OR_RETURN(type, TypeOf("", kind));
  }
  if (name.name.empty()) return InvalidArgument("A name is needed");
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr object, store->Get(type, name));
  Json shown = *object;
  EraseField(&shown, {"metadata", "managedFields"});
  EraseField(&shown,
             {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"});
  if (!is_copy) return DumpYaml(shown);
  shown.Erase("status");
  Json metadata;
  metadata.Set("name", absl::StrCat(name.name, "-copy"));
  metadata.Set("namespace", NamespaceOf(*object));
  // So that the copy of a trial is seen beside its experiment's own, which do not count it.
  const std::string experiment = StringField(*object, {"metadata", "labels", kExperimentLabel});
  if (!experiment.empty()) {
    Json labels;
    labels.Set(kExperimentLabel, experiment);
    metadata.Set("labels", std::move(labels));
  }
  shown.Set("metadata", std::move(metadata));
  return DumpYaml(shown);
}

}  // namespace weft::platform
