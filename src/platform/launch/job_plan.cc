// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/job_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "platform/launch/expansion.h"
#include "platform/object/task_config.h"

namespace weft::platform {
namespace {

bool IsInCluster(ReplicaType type) { return type != ReplicaType::kEvaluator; }

TaskCluster MakeCluster(const TfJob& job, const std::vector<int>& ports) {
  std::map<ReplicaType, std::vector<std::string>> hosts;
  size_t next = 0;
  for (const ReplicaSpec& replica : job.replicas) {
    if (!IsInCluster(replica.type)) continue;
    for (int64_t i = 0; i < replica.replicas; ++i) {
      hosts[replica.type].push_back(absl::StrCat("127.0.0.1:", ports[next++]));
    }
  }
  TaskCluster cluster;
  cluster.job = &job;
  cluster.has_evaluators = false;
  cluster.is_fixed = true;
  cluster.host_of = [hosts](ReplicaType type, int64_t index) {
    const auto found = hosts.find(type);
    return found == hosts.end() ? "" : found->second[static_cast<size_t>(index)];
  };
  return cluster;
}

class Planner {
 public:
  Planner(const TfJob& job, const LocalSettings& settings, const std::vector<int>& ports)
      : job_(job),
        settings_(settings),
        cluster_(MakeCluster(job, ports)),
        problems_(settings.file) {}

  StatusOr<LocalJob> Plan() {
    plan_.name = job_.metadata.name;
    plan_.version = job_.version;
    plan_.backoff_limit = settings_.backoff_limit.has_value() ? settings_.backoff_limit
                                                              : job_.run_policy.backoff_limit;
    if (job_.run_policy.active_deadline_seconds.has_value()) {
      plan_.deadline = absl::Seconds(*job_.run_policy.active_deadline_seconds);
    }
    if (job_.run_policy.suspend) {
      problems_.Add(Json(), "spec.runPolicy.suspend",
                    "holds true, so the job must not run: write false or leave it out");
    }
    if (job_.enable_dynamic_worker) {
      plan_.notes.push_back(
          "enableDynamicWorker has no meaning here: TF_CONFIG has the whole cluster");
    }
    for (const ReplicaSpec& replica : job_.replicas) AddReplica(replica);
    NoteImages();
    ChooseDecidingTasks();
    WEFT_RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(plan_);
  }

 private:
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
    for (int64_t index = 0; index < replica.replicas; ++index) {
      AddTask(replica, *container, index, place, path);
    }
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
    note(container.has_volume_mounts, "the volumeMounts (paths are those of this machine)");
  }

  void NoteImages() {
    if (images_.empty()) return;
    plan_.notes.insert(
        plan_.notes.begin(),
        absl::StrCat("images are not used on this machine, each task runs its command "
                     "here: ",
                     absl::StrJoin(images_, ", ")));
  }

  void AddTask(const ReplicaSpec& replica, const Container& container, int64_t index,
               const Json& place, const std::string& path) {
    LocalTask task;
    task.type = replica.type;
    task.index = index;
    task.name = absl::StrCat(ReplicaTypeName(replica.type), "-", index);
    task.restart_policy = settings_.restart_policy.value_or(replica.restart_policy);
    // Variables see those before them; commands see all of the container's, but not what we
    // inherit.
    std::vector<std::string> declared;
    for (const EnvironmentVariable& variable : container.environment) {
      const std::optional<std::string> value =
          ValueOf(variable, task, declared, place, absl::StrCat(path, ".env"));
      if (value.has_value()) SetEnvironment(&declared, variable.name, *value);
    }
    if (const std::string config = MakeTfConfig(cluster_, replica.type, index); !config.empty()) {
      SetEnvironment(&declared, "TF_CONFIG", config);
    }
    task.environment = Inherited();
    for (const std::string& line : declared) {
      const size_t equals = line.find('=');
      SetEnvironment(&task.environment, line.substr(0, equals), line.substr(equals + 1));
    }
    const VariableLookup lookup = [&](const std::string& name) {
      return FindEnvironment(declared, name);
    };
    for (const auto* words : {&container.command, &container.args}) {
      for (const std::string& word : *words) task.argv.push_back(ExpandVariables(word, lookup));
    }
    for (std::string& word : MakeTaskFlags(cluster_, replica.type, index))
      task.argv.push_back(std::move(word));
    task.working_directory = settings_.working_directory.empty() ? container.working_directory
                                                                 : settings_.working_directory;
    plan_.tasks.push_back(std::move(task));
  }

  std::optional<std::string> ValueOf(const EnvironmentVariable& variable, const LocalTask& task,
                                     const std::vector<std::string>& declared, const Json& place,
                                     const std::string& path) {
    if (variable.from_field == "metadata.name") {
      return absl::StrCat(job_.metadata.name, "-", task.name);
    }
    if (variable.from_field == "metadata.namespace") return job_.metadata.namespace_name;
    if (variable.from_field.empty() && variable.from_elsewhere.empty()) {
      return ExpandVariables(
          variable.value, [&](const std::string& name) { return FindEnvironment(declared, name); });
    }
    const std::optional<std::string> ours = FindEnvironment(settings_.environment, variable.name);
    if (!ours.has_value() && !variable.is_optional && task.index == 0) {
      problems_.Add(
          place, path,
          absl::StrCat(variable.name, " comes from ",
                       variable.from_field.empty() ? variable.from_elsewhere : variable.from_field,
                       ", which is not on this machine: export ", variable.name,
                       "=... before weft run"));
    }
    return ours;
  }

  std::vector<std::string> Inherited() const {
    std::vector<std::string> environment;
    for (const std::string& line : settings_.environment) {
      // Of another job, if there is one.
      if (line.rfind("TF_CONFIG=", 0) != 0) environment.push_back(line);
    }
    if (!settings_.program_folder.empty()) {
      const std::string path = FindEnvironment(environment, "PATH").value_or("/usr/bin:/bin");
      SetEnvironment(&environment, "PATH", absl::StrCat(settings_.program_folder, ":", path));
    }
    // Python holds back what it prints to a pipe, and logs would come at the end.
    if (!FindEnvironment(environment, "PYTHONUNBUFFERED").has_value()) {
      SetEnvironment(&environment, "PYTHONUNBUFFERED", "1");
    }
    return environment;
  }

  void ChooseDecidingTasks() {
    const bool has_chief = HasTasks(ReplicaType::kChief) || HasTasks(ReplicaType::kMaster);
    for (size_t i = 0; i < plan_.tasks.size(); ++i) {
      const LocalTask& task = plan_.tasks[i];
      const bool is_chief = task.type == ReplicaType::kChief || task.type == ReplicaType::kMaster;
      const bool is_deciding_worker =
          !has_chief && task.type == ReplicaType::kWorker &&
          (task.index == 0 || job_.success_policy == SuccessPolicy::kAllWorkers);
      if (is_chief || is_deciding_worker) plan_.deciding_tasks.push_back(i);
    }
    if (plan_.deciding_tasks.empty()) {
      problems_.Add(Json(), "spec.tfReplicaSpecs",
                    "there is no Worker, Chief or Master, so nothing would end the job");
    }
  }

  bool HasTasks(ReplicaType type) const {
    const ReplicaSpec* const replica = job_.Find(type);
    return replica != nullptr && replica->replicas > 0;
  }

  const TfJob& job_;
  const LocalSettings& settings_;
  const TaskCluster cluster_;
  Problems problems_;
  std::set<std::string> images_;
  LocalJob plan_;
};

}  // namespace

int CountPorts(const TfJob& job) {
  int64_t count = 0;
  for (const ReplicaSpec& replica : job.replicas) {
    if (IsInCluster(replica.type)) count += replica.replicas;
  }
  return static_cast<int>(count);
}

StatusOr<LocalJob> PlanLocalJob(const TfJob& job, const LocalSettings& settings,
                                const std::vector<int>& ports) {
  if (ports.size() != static_cast<size_t>(CountPorts(job))) {
    return Internal("The plan of job '", job.metadata.name, "' wants ", CountPorts(job),
                    " ports, got ", ports.size());
  }
  return Planner(job, settings, ports).Plan();
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
  job.metadata.name = absl::AsciiStrToLower(path.substr(path.rfind('/') + 1));
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
