// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "base/subprocess.h"
#include "platform/launch/job_volumes.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"

namespace weft::platform {
namespace {

constexpr char kNoImage[] = "none";  // a pod must have one

const char* PolicyName(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kExitCode:
      return "ExitCode";
  }
  return "Never";
}

Json Words(const std::vector<std::string>& words) {
  Json list = Json::MakeArray();
  for (const std::string& word : words) list.Append(word);
  return list;
}

Json Map(const std::vector<std::pair<std::string, std::string>>& entries) {
  Json map = Json::MakeObject();
  for (const auto& [name, value] : entries) map.Set(name, value);
  return map;
}

bool IsServer(const std::vector<std::string>& command) {
  return command.size() >= 2 && command[1] == "server" &&
         command[0].substr(command[0].rfind('/') + 1) == "weft";
}

class Planner {
 public:
  Planner(const TfJob& job, const LocalSettings& settings)
      : job_(job), settings_(settings), problems_(settings.file), objects_(settings.documents) {}

  StatusOr<LocalJob> Plan() {
    plan_.name = job_.metadata.name;
    plan_.backoff_limit = settings_.backoff_limit.has_value() ? settings_.backoff_limit
                                                              : job_.run_policy.backoff_limit;
    if (job_.run_policy.suspend) {
      problems_.Add(Json(), "spec.runPolicy.suspend",
                    "holds true, so the job must not run: write false or leave it out");
    }
    MakeObject();
    for (const ReplicaSpec& replica : job_.replicas) AddReplica(replica);
    NoteImages();
    AddObjects();
    if (std::none_of(plan_.tasks.begin(), plan_.tasks.end(),
                     [](const LocalTask& task) { return task.decides; })) {
      problems_.Add(Json(), "spec.tfReplicaSpecs",
                    "there is no Worker, Chief or Master, so nothing would end the job");
    }
    WEFT_RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(plan_);
  }

 private:
  void MakeObject() {
    const bool is_v1 = job_.version == TfJobVersion::kV1;
    Json& object = plan_.object;
    object.Set("apiVersion", is_v1 ? "kubeflow.org/v1" : "kubeflow.org/v1beta1");
    object.Set("kind", "TFJob");
    SetField(&object, {"metadata", "name"}, job_.metadata.name);
    SetField(&object, {"metadata", "namespace"}, job_.metadata.namespace_name);
    if (!job_.metadata.labels.empty())
      SetField(&object, {"metadata", "labels"}, Map(job_.metadata.labels));
    for (const auto& [name, value] : job_.metadata.annotations) {
      if (!absl::StartsWith(name, kAnnotationPrefix)) {
        SetField(&object, {"metadata", "annotations", name}, value);
      }
    }
    AddExtras(&object);
    // What still runs is ended when the run says so.
    if (is_v1) {
      SetField(&object, {"spec", "runPolicy", "cleanPodPolicy"}, "None");
    } else {
      SetField(&object, {"spec", "cleanPodPolicy"}, "None");
    }
    if (job_.success_policy == SuccessPolicy::kAllWorkers)
      SetField(&object, {"spec", "successPolicy"}, "AllWorkers");
    if (job_.enable_dynamic_worker) SetField(&object, {"spec", "enableDynamicWorker"}, true);
    if (job_.run_policy.active_deadline_seconds.has_value()) {
      plan_.deadline = absl::Seconds(*job_.run_policy.active_deadline_seconds);
    }
  }

  // What the other kind of job says in fields of its own, too. Nobody looks at a TensorBoard here.
  void AddExtras(Json* object) const {
    const auto add = [&](const char* name, bool is_asked, const std::string& value) {
      if (is_asked) SetField(object, {"metadata", "annotations", name}, value);
    };
    add(kTaskFlagsAnnotation, job_.extras.has_task_flags, "true");
    add(kTrialAnnotation, !job_.extras.trial.empty(), job_.extras.trial);
    add(kRestartAnnotation, job_.extras.restarts_whole, "job");
  }

  void AddReplica(const ReplicaSpec& replica) {
    const Container* const container = replica.TensorFlowContainer();
    if (container == nullptr || replica.replicas == 0) return;
    const std::string path = absl::StrCat(replica.path, ".template.spec.containers");
    Json place;
    place.set_position(container->position);
    if (container->command.empty()) {
      problems_.Add(
          place, absl::StrCat(path, ".command"),
          absl::StrCat("missing: there is no image on this machine to say what to run. Write\n"
                       "      command: [\"python\", \"train.py\"]",
                       container->args.empty() ? "" : "   (before the args)"));
    }
    NoteWhatIsNotUsed(replica, *container);
    const RestartPolicy policy = settings_.restart_policy.value_or(replica.restart_policy);
    for (int64_t index = 0; index < replica.replicas; ++index) {
      LocalTask task;
      task.name = absl::StrCat(ReplicaTypeName(replica.type), "-", index);
      task.program = container->command.empty() ? "" : container->command[0];
      task.type = replica.type;
      task.restart_policy = policy;
      task.decides = Decides(replica.type, index);
      task.serves = IsServer(container->command);
      plan_.tasks.push_back(std::move(task));
    }
    // Nobody looks at a TensorBoard here.
    const bool has_board = job_.kind == kTensorflowKind && job_.extras.tensorboard.has_value();
    TaskVolumes volumes =
        PlanVolumes(replica, *container, objects_, has_board ? "tensorboard" : "", &problems_);
    Json made = MakeContainer(replica, *container, place, path);
    if (volumes.mounts.size() > 0) made.Set("volumeMounts", std::move(volumes.mounts));
    Json pod;
    pod.Set("containers", Json(Json::Array{std::move(made)}));
    if (volumes.volumes.size() > 0) pod.Set("volumes", std::move(volumes.volumes));
    claims_.merge(volumes.claims);
    // Whoever ends it, ends it earlier.
    pod.Set("terminationGracePeriodSeconds",
            absl::ToInt64Seconds(absl::Ceil(settings_.grace, absl::Seconds(1))) + 60);
    Json spec;
    spec.Set("replicas", replica.replicas);
    spec.Set("restartPolicy", PolicyName(policy));
    SetField(&spec, {"template", "spec"}, std::move(pod));
    SetField(&plan_.object, {"spec", "tfReplicaSpecs", ReplicaTypeName(replica.type)},
             std::move(spec));
  }

  // Those of the file, and a claim for each name that has none.
  void AddObjects() {
    plan_.objects = objects_.all();
    for (const std::string& name : claims_) {
      if (!objects_.Has("PersistentVolumeClaim", name)) plan_.objects.push_back(MakeClaim(name));
      plan_.notes.push_back(absl::StrCat("the data of claim '", name, "' lie in ",
                                         settings_.claim_folder, "/", job_.metadata.namespace_name,
                                         "/", name, " and stay there"));
    }
  }

  // Of the container's variable, when the file has the object that it comes from; else null.
  const Json* SourceInFile(const ReplicaSpec& replica, const Container& container,
                           const std::string& name) const {
    const Json* const written = WrittenContainer(replica, container.name);
    const Json* const variables = written == nullptr ? nullptr : FindField(*written, {"env"});
    if (variables == nullptr) return nullptr;
    for (const Json& variable : variables->items()) {
      const Json* const source = FindField(variable, {"valueFrom"});
      if (StringField(variable, {"name"}) != name || source == nullptr) continue;
      const bool is_there =
          objects_.Has("ConfigMap", StringField(*source, {"configMapKeyRef", "name"})) ||
          objects_.Has("Secret", StringField(*source, {"secretKeyRef", "name"}));
      return is_there ? source : nullptr;
    }
    return nullptr;
  }

  Json MakeContainer(const ReplicaSpec& replica, const Container& container, const Json& place,
                     const std::string& path) {
    Json made;
    made.Set("name", container.name);
    made.Set("image", container.image.empty() ? kNoImage : container.image);
    made.Set("command", Words(container.command));
    if (!container.args.empty()) made.Set("args", Words(container.args));
    if (container.resources.size() > 0) made.Set("resources", container.resources);
    const std::string& folder = settings_.working_directory.empty() ? container.working_directory
                                                                    : settings_.working_directory;
    if (!folder.empty()) made.Set("workingDir", folder);
    Json variables = Json::MakeArray();
    for (const EnvironmentVariable& variable : container.environment) {
      if (const Json* const source = SourceInFile(replica, container, variable.name)) {
        Json kept;
        kept.Set("name", variable.name);
        kept.Set("valueFrom", *source);
        variables.Append(std::move(kept));
        continue;
      }
      AddVariable(variable, place, absl::StrCat(path, ".env"), &variables);
    }
    if (variables.size() > 0) made.Set("env", std::move(variables));
    Json ports = Json::MakeArray();
    for (const ContainerPort& port : container.ports) {
      Json made_port;
      if (!port.name.empty()) made_port.Set("name", port.name);
      made_port.Set("containerPort", port.port);
      ports.Append(std::move(made_port));
    }
    if (ports.size() > 0) made.Set("ports", std::move(ports));
    return made;
  }

  void AddVariable(const EnvironmentVariable& variable, const Json& place, const std::string& path,
                   Json* variables) {
    Json made;
    made.Set("name", variable.name);
    if (variable.from_field == "metadata.name" || variable.from_field == "metadata.namespace") {
      SetField(&made, {"valueFrom", "fieldRef", "fieldPath"}, variable.from_field);
    } else if (variable.from_field.empty() && variable.from_elsewhere.empty()) {
      made.Set("value", variable.value);
    } else {
      const std::optional<std::string> ours = FindEnvironment(settings_.environment, variable.name);
      if (!ours.has_value() && variable.is_optional) return;
      if (!ours.has_value()) {
        const std::string& from =
            variable.from_field.empty() ? variable.from_elsewhere : variable.from_field;
        problems_.Add(place, path,
                      absl::StrCat(variable.name, " comes from ", from,
                                   ", which is not on this machine: export ", variable.name,
                                   "=... before weft run"));
      }
      // It is what it is: a $(...) in it is no reference.
      made.Set("value", EscapeReferences(ours.value_or("")));
    }
    variables->Append(std::move(made));
  }

  static std::string EscapeReferences(const std::string& text) {
    std::string escaped;
    for (const char c : text) escaped.append(c == '$' ? "$$" : std::string(1, c));
    return escaped;
  }

  void NoteWhatIsNotUsed(const ReplicaSpec& replica, const Container& container) {
    const absl::string_view type = ReplicaTypeName(replica.type);
    if (!container.image.empty()) images_.insert(container.image);
    const auto note = [&](bool is_there, absl::string_view what) {
      if (is_there)
        plan_.notes.push_back(absl::StrCat("not used on this machine: ", what, " of ", type));
    };
    note(replica.pod.has_init_containers, "the initContainers");
    note(replica.pod.containers.size() > 1, "the containers beside 'tensorflow'");
    note(container.has_environment_from, "envFrom");
  }

  void NoteImages() {
    if (images_.empty()) return;
    plan_.notes.insert(
        plan_.notes.begin(),
        absl::StrCat("images are not used on this machine, each task runs its command "
                     "here: ",
                     absl::StrJoin(images_, ", ")));
  }

  bool Decides(ReplicaType type, int64_t index) const {
    if (type == ReplicaType::kChief || type == ReplicaType::kMaster) return true;
    const bool has_chief = HasTasks(ReplicaType::kChief) || HasTasks(ReplicaType::kMaster);
    return !has_chief && type == ReplicaType::kWorker &&
           (index == 0 || job_.success_policy == SuccessPolicy::kAllWorkers);
  }

  bool HasTasks(ReplicaType type) const {
    const ReplicaSpec* const replica = job_.Find(type);
    return replica != nullptr && replica->replicas > 0;
  }

  const TfJob& job_;
  const LocalSettings& settings_;
  Problems problems_;
  const FileObjects objects_;
  std::set<std::string> images_;
  std::set<std::string> claims_;  // that the tasks mount
  LocalJob plan_;
};

// As a service may be called, which the job's tasks become: "Train.py" is "train-py".
std::string JobNameOf(const std::string& program) {
  std::string name;
  for (const char c : absl::AsciiStrToLower(program.substr(program.rfind('/') + 1))) {
    name.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '-');
  }
  const size_t first = name.find_first_of("abcdefghijklmnopqrstuvwxyz");
  name = first == std::string::npos ? "job" : name.substr(first, 40);
  name.erase(name.find_last_not_of('-') + 1);
  return name;
}

}  // namespace

StatusOr<LocalJob> PlanLocalJob(const TfJob& job, const LocalSettings& settings) {
  return Planner(job, settings).Plan();
}

StatusOr<TfJob> MakeProgramJob(const ProgramJob& program) {
  if (program.command.empty()) {
    return InvalidArgument(
        "There is no program to run: write it after two dashes, as in "
        "`weft run --ps 1 --workers 2 -- python train.py`");
  }
  if (program.ps < 0 || program.workers < 0 || program.ps + program.workers > 10000) {
    return InvalidArgument("--ps and --workers take 0 to 10000, got ", program.ps, " and ",
                           program.workers);
  }
  TfJob job;
  const std::string& path = program.command[0];
  job.metadata.name = JobNameOf(path);
  Container container;
  container.name = "tensorflow";
  container.command = program.command;
  // A $(...) on the command line is the program's own.
  for (std::string& word : container.command) {
    std::string escaped;
    for (const char c : word) escaped.append(c == '$' ? "$$" : std::string(1, c));
    word = std::move(escaped);
  }
  const auto add = [&](ReplicaType type, int64_t replicas) {
    if (replicas == 0) return;
    ReplicaSpec replica;
    replica.type = type;
    replica.replicas = replicas;
    replica.restart_policy = RestartPolicy::kExitCode;
    replica.pod.containers = {container};
    replica.path = absl::StrCat("--", ReplicaTypeName(type));
    job.replicas.push_back(std::move(replica));
  };
  add(ReplicaType::kChief, program.chief ? 1 : 0);
  add(ReplicaType::kWorker, program.workers);
  add(ReplicaType::kPs, program.ps);
  add(ReplicaType::kEvaluator, program.evaluator ? 1 : 0);
  return job;
}

}  // namespace weft::platform
