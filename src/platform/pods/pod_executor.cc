// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_executor.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/files.h"
#include "base/log.h"
#include "base/poll_timeout.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_view.h"
#include "platform/pods/gpu_variables.h"
#include "platform/pods/lost_devices.h"
#include "platform/pods/orphans.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLongestWait = absl::Milliseconds(500);
// At one go: so many at least, and others for so long.
constexpr int kLeastStarts = 32;
constexpr absl::Duration kLongestStarting = absl::Milliseconds(50);
constexpr absl::Duration kJoinRetry = absl::Seconds(1);
constexpr absl::Duration kLookPeriod = absl::Seconds(5);
// So few all have their turn whenever one has; of more, so many times as long as that takes passes
// between.
constexpr size_t kFewRuns = 64;
constexpr int kSweepPause = 10;
constexpr absl::Duration kHeartbeatPeriod = absl::Seconds(10);
// Processes, not containers with addresses of their own: there is no reason for the 110 of a
// kubelet.
constexpr int kMostPods = 10000;
constexpr absl::Duration kClusterRefresh = absl::Minutes(1);  // each a call for each volume

std::string FolderOf(const std::string& log_folder, const std::string& uid) {
  return JoinPath(log_folder, uid);
}

// By os-release(5), as "Debian GNU/Linux 12 (bookworm)".
std::string OsImage(absl::string_view release) {
  for (absl::string_view line : absl::StrSplit(release, '\n')) {
    if (!absl::ConsumePrefix(&line, "PRETTY_NAME=")) continue;
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "\"")) absl::ConsumeSuffix(&line, "\"");
    return std::string(line);
  }
  return "Linux";
}

// Clients that check what they read refuse a node without one of these.
Json NodeInfo() {
  utsname system = {};
  ::uname(&system);
  const std::string machine = system.machine;
  RealFileSystem files;
  const auto text_of = [&](const char* path) {
    return std::string(absl::StripAsciiWhitespace(ReadFile(files, path, 16 << 10).value_or("")));
  };
  const std::string id = text_of("/etc/machine-id");
  Json info;
  info.Set("kubeletVersion", "weft");
  info.Set("kubeProxyVersion", "");
  info.Set("containerRuntimeVersion", "weft://processes");
  info.Set("kernelVersion", system.release);
  info.Set("operatingSystem", "linux");
  info.Set("osImage", OsImage(text_of("/etc/os-release")));
  info.Set("architecture", machine == "x86_64"    ? "amd64"
                           : machine == "aarch64" ? "arm64"
                                                  : machine);
  info.Set("machineID", id);
  info.Set("systemUUID", id);
  info.Set("bootID", text_of("/proc/sys/kernel/random/boot_id"));
  return info;
}

bool HasBegun(const PodRun& run) {
  return std::any_of(run.containers().begin(), run.containers().end(), [](const auto& container) {
    return container->state() != ContainerRun::State::kWaiting;
  });
}

std::map<std::string, Json> NodesOf(const PodExecutor::Options& options) {
  std::map<std::string, Json> nodes;
  for (const Json& node : options.nodes) nodes[NameOf(node)] = node;
  if (!nodes.empty()) return nodes;
  Json node;
  SetField(&node, {"metadata", "name"}, options.node_name);
  nodes[options.node_name] = std::move(node);
  return nodes;
}

}  // namespace

PodExecutor::PodExecutor(Options options)
    : options_(std::move(options)),
      store_(options_.store),
      nodes_(NodesOf(options_)),
      events_(store_, options_.clock, "weft-executor"),
      begun_(options_.clock->Now()),
      probes_("probes", 2),
      hooks_("hooks", 4),
      confiner_(OurProcessors(), options_.topology),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pods_(store_, Pods(), {}, options_.clock) {
  if (!options_.volume_folder.empty()) {
    PodVolumes::Options volumes;
    volumes.store = store_;
    volumes.clock = options_.clock;
    volumes.events = &events_;
    volumes.folder = options_.volume_folder;
    volumes.claim_folder = options_.claim_folder;
    if (options_.has_heartbeat) volumes.refresh = kClusterRefresh;
    volumes_ = std::make_unique<PodVolumes>(std::move(volumes));
  }
  pods_.AddHandler([this](const ObjectPtr& previous, const ObjectPtr& object) {
    const Json& changed = object == nullptr ? *previous : *object;
    {
      absl::MutexLock lock(&mutex_);
      changed_.emplace(NamespaceOf(changed), NameOf(changed));
      const bool is_other =
          previous != nullptr && (object == nullptr || UidOf(*previous) != UidOf(*object));
      if (is_other && !UidOf(*previous).empty()) gone_.insert(UidOf(*previous));
    }
    Wake();
  });
}

PodExecutor::~PodExecutor() {
  stopping_.store(true);
  Wake();
  thread_.reset();
}

void PodExecutor::Start() {
  thread_ = std::make_unique<Thread>("executor", [this] { Run(); });
}

void PodExecutor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

StatusOr<ObjectPtr> PodExecutor::FindPod(const ObjectName& name) const {
  ObjectPtr pod = pods_.Get(name.namespace_name, name.name);
  if (pod == nullptr) return ObjectNotFound(Pods(), name.name);
  return pod;
}

StatusOr<std::string> PodExecutor::LogPath(const std::string& log_folder, const Json& pod,
                                           const std::string& container, bool is_previous) {
  const auto waits = [&](absl::string_view reason) {
    return FailedPrecondition("container \"", container, "\" in pod \"", NameOf(pod),
                              "\" is waiting to start: ", reason);
  };
  std::optional<ContainerStatusView> status = PodView(pod).StatusOf(container);
  if (!status.has_value()) {
    if (const auto of_init = PodView(pod).InitStatusOf(container)) status.emplace(*of_init);
  }
  if (!status.has_value()) return waits("ContainerCreating");
  const int64_t restart = status->restarts() - (is_previous ? 1 : 0);
  if (restart < 0) {
    return NotFound("previous terminated container \"", container, "\" in pod \"", NameOf(pod),
                    "\" not found");
  }
  WEFT_ASSIGN_OR_RETURN(std::string path,
                        ContainerLogPath(FolderOf(log_folder, UidOf(pod)), container, restart));
  if (::access(path.c_str(), R_OK) != 0) return waits(status->waiting_reason());
  return path;
}

void PodExecutor::Run() {
  while (!stopping_.load()) {
    pods_.Maintain();
    LookAtMachine();
    Join();
    for (const Key& key : TakeChanged()) Look(key);
    AnswerQuestions();
    DropLogs();
    KeepVolumes();
    StepAll();
    ReapOrphans([this](pid_t pid) {
      return IsSubprocess(pid) || (options_.guard != nullptr && pid == options_.guard->pid());
    });
    WaitForNews();
  }
  // On this thread, which spawned them.
  runs_.clear();
}

// Devices come and go.
void PodExecutor::LookAtMachine() {
  const absl::Duration now = options_.clock->Monotonic();
  if (!options_.look_at_machine || now < next_look_) return;
  next_look_ = now + kLookPeriod;
  for (Json& node : options_.look_at_machine()) {
    const auto known = nodes_.find(NameOf(node));
    if (known == nodes_.end() || SameJson(known->second, node)) continue;
    known->second = std::move(node);
    next_join_ = now;
  }
  TellOfLostDevices();
}

void PodExecutor::TellOfLostDevices() {
  for (const auto& [uid, run] : runs_) {
    const Json& pod = *run->pod();
    const auto node = nodes_.find(StringField(pod, {"spec", "nodeName"}));
    if (node == nodes_.end()) continue;
    const std::vector<std::string> lost = LostGpusOf(pod, node->second);
    if (lost.empty()) {
      lost_.erase(uid);
      continue;
    }
    auto& [told, since] = lost_[uid];
    if (told == lost) continue;
    told = lost;
    since = options_.clock->Now();
    events_.Record(pod, "Warning", "DeviceLost", LostDevicesMessage(lost));
  }
}

// Shows this machine as its nodes, again and again where that is their sign of life.
void PodExecutor::Join() {
  const absl::Duration now = options_.clock->Monotonic();
  if (now < next_join_) return;
  next_join_ = options_.has_heartbeat ? now + kHeartbeatPeriod : absl::InfiniteDuration();
  for (const auto& [name, node] : nodes_) {
    const Status shown = Show(node);
    if (shown.ok()) continue;
    next_join_ = now + kJoinRetry;
    WEFT_LOG_EVERY(WARNING, absl::Seconds(30))
        << "The server does not hear from node '" << name
        << "', which counts as lost in time: " << shown.message();
  }
}

Status PodExecutor::Show(const Json& described) {
  const std::string name = NameOf(described);
  Json node;
  node.Set("apiVersion", "v1");
  node.Set("kind", "Node");
  node.Set("metadata", *described.Find("metadata"));
  if (const Json* const taints = FindField(described, {"spec", "taints"}))
    SetField(&node, {"spec", "taints"}, *taints);
  SetField(&node, {"metadata", "labels", "kubernetes.io/hostname"}, name);
  const Json info = NodeInfo();
  SetField(&node, {"metadata", "labels", "kubernetes.io/os"},
           StringField(info, {"operatingSystem"}));
  SetField(&node, {"metadata", "labels", "kubernetes.io/arch"},
           StringField(info, {"architecture"}));
  const Status created = store_->Create(Nodes(), "", node, WriteOptions()).status();
  if (!created.ok()) {
    if (!IsObjectExists(created)) return created;
    // Whoever cordoned it or gave it labels of their own is left alone.
    node.Erase("spec");
    WEFT_RETURN_IF_ERROR(
        store_->Patch(Nodes(), {"", name}, PatchKind::kMerge, node, WriteOptions()).status());
  }
  Json condition;
  condition.Set("type", "Ready");
  condition.Set("status", "True");
  condition.Set("reason", "WeftExecutor");
  if (options_.has_heartbeat)
    condition.Set("lastHeartbeatTime", FormatObjectTime(options_.clock->Now()));
  condition.Set("lastTransitionTime", FormatObjectTime(begun_));
  Json status;
  SetField(&status, {"status", "conditions"}, Json(Json::Array{std::move(condition)}));
  SetField(&status, {"status", "nodeInfo"}, info);
  const int64_t memory = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  for (const char* kind : {"capacity", "allocatable"}) {
    SetField(&status, {"status", kind, "cpu"}, absl::StrCat(UsableCores()));
    SetField(&status, {"status", kind, "memory"}, absl::StrCat(memory / 1024, "Ki"));
    SetField(&status, {"status", kind, "pods"}, absl::StrCat(kMostPods));
    if (const Json* const amounts = FindField(described, {"status", "allocatable"})) {
      for (const JsonMember& amount : amounts->members())
        SetField(&status, {"status", kind, amount.name}, amount.value);
    }
  }
  WriteOptions options;
  options.subresource = "status";
  return store_->Patch(Nodes(), {"", name}, PatchKind::kMerge, status, options).status();
}

std::set<PodExecutor::Key> PodExecutor::TakeChanged() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(changed_, {});
}

void PodExecutor::ComeAgain(const Json& pod) {
  absl::MutexLock lock(&mutex_);
  changed_.emplace(NamespaceOf(pod), NameOf(pod));
}

// After their processes, which may still write.
void PodExecutor::DropLogs() {
  std::set<std::string> gone;
  {
    absl::MutexLock lock(&mutex_);
    gone = std::exchange(gone_, {});
  }
  for (const std::string& uid : gone) {
    Remove(uid);
    if (options_.log_folder.empty()) continue;
    std::error_code error;
    std::filesystem::remove_all(FolderOf(options_.log_folder, uid), error);
    if (error) WEFT_LOG(WARNING) << "The logs of a deleted pod stay: " << error.message();
  }
}

void PodExecutor::Look(const Key& key) {
  const ObjectPtr pod = pods_.Get(key.first, key.second);
  const std::string uid = pod == nullptr ? "" : UidOf(*pod);
  // Gone, or another one by that name.
  const auto known = uids_.find(key);
  if (known != uids_.end() && known->second != uid) Remove(std::string(known->second));
  if (pod == nullptr) return;
  const std::string node = PodView(*pod).node();
  if (node.empty()) {
    if (options_.takes_all_pods && !IsTerminating(*pod)) Bind(*pod);
    return;
  }
  if (nodes_.count(node) == 0) return;
  const auto run = runs_.find(uid);
  if (run == runs_.end()) {
    if (!IsFinishedPod(*pod) && !IsTerminating(*pod)) return Begin(pod);
    // Nothing of it runs here any more.
    if (IsTerminating(*pod)) FinishDeletion(*pod);
    return;
  }
  run->second->SetPod(pod);
  stirred_.insert(uid);
  if (!IsTerminating(*pod)) return;
  if (!run->second->is_terminating()) {
    events_.Record(*pod, "Normal", "Killing", "Stopping its containers");
  }
  const absl::Duration grace =
      absl::Seconds(IntField(*pod, {"metadata", "deletionGracePeriodSeconds"}, 30));
  run->second->Terminate(grace, options_.clock->Now());
}

void PodExecutor::Bind(const Json& pod) {
  Json bound = pod;
  SetField(&bound, {"spec", "nodeName"}, nodes_.begin()->first);
  WriteOptions options;
  options.subresource = "binding";
  const Status status = store_->Update(Pods(), std::move(bound), options).status();
  if (status.ok()) {
    events_.Record(pod, "Normal", "Scheduled",
                   absl::StrCat("Successfully assigned ", NamespaceOf(pod), "/", NameOf(pod),
                                " to ", nodes_.begin()->first));
  } else if (!IsConflict(status) && !IsObjectNotFound(status)) {
    WEFT_LOG(WARNING) << "Pod " << NameOf(pod) << " is not bound: " << status.message();
    ComeAgain(pod);
  }
}

void PodExecutor::Begin(const ObjectPtr& pod) {
  const std::string uid = UidOf(*pod);
  ContainerOutput output = options_.output;
  if (!options_.log_folder.empty()) output.log_folder = FolderOf(options_.log_folder, uid);
  if (options_.listener) {
    output.listener = [this, pod](const std::string& /*container*/, int descriptor,
                                  const std::vector<std::string>& lines) {
      options_.listener(*pod, descriptor, lines);
    };
  }
  PodKeeping keeping;
  keeping.probe_pool = &probes_;
  keeping.hook_pool = &hooks_;
  keeping.confiner = &confiner_;
  keeping.volumes = volumes_.get();
  keeping.waits = options_.waits;
  keeping.tell = [this](const Json& of, const char* type, const char* reason,
                        const std::string& message) { events_.Record(of, type, reason, message); };
  uids_[{NamespaceOf(*pod), NameOf(*pod)}] = uid;
  runs_[uid] =
      std::make_unique<PodRun>(pod, output, options_.pacing, options_.clock->Now(), keeping);
  events_.Record(*pod, "Normal", "Started", "Starting its containers as processes of this machine");
}

void PodExecutor::KeepVolumes() {
  if (volumes_ == nullptr) return;
  if (!has_swept_ && pods_.HasSynced()) {
    std::set<std::string> known;
    for (const ObjectPtr& pod : pods_.List()) known.insert(UidOf(*pod));
    volumes_->Sweep(known);
    has_swept_ = true;
  }
  volumes_->Tidy();
  for (const auto& [uid, run] : runs_) volumes_->Refresh(*run->pod());
}

void PodExecutor::StepAll() {
  const CommandMaker maker = [this](const Json& pod,
                                    const Json& container) -> StatusOr<ContainerCommand> {
    WEFT_ASSIGN_OR_RETURN(
        ContainerCommand command,
        MakeContainerCommand(store_, pod, container, options_.environment, &services_));
    const auto node = nodes_.find(PodView(pod).node());
    if (node != nodes_.end()) SetGpuVariables(pod, container, node->second, &command.environment);
    if (command.working_directory.empty()) command.working_directory = options_.working_directory;
    return command;
  };
  confiner_.Watch(options_.clock->Monotonic());
  const absl::Duration begun = options_.clock->Monotonic();
  const bool sweeps = runs_.size() <= kFewRuns || begun >= next_sweep_;
  std::vector<std::string> uids;
  for (const auto& [uid, run] : runs_) {
    if (sweeps || stirred_.count(uid) != 0 || !HasBegun(*run)) uids.push_back(uid);
  }
  stirred_.clear();
  int started = 0;
  is_behind_ = false;
  for (const std::string& uid : uids) {
    PodRun& run = *runs_[uid];
    // Ends of others are told between the starts of many.
    const bool starts = !HasBegun(run);
    if (starts && ++started > kLeastStarts &&
        options_.clock->Monotonic() - begun > kLongestStarting) {
      is_behind_ = true;
      continue;
    }
    run.Step(maker, options_.guard, options_.clock->Monotonic(), options_.clock->Now());
    WriteStatus(uid);
    turns_[&run] = {run.NextDue(), run.OutputDue()};
    if (!run.IsOver()) continue;
    if (IsTerminating(*run.pod())) {
      FinishDeletion(*run.pod());
    } else if (written_.count(uid) != 0 && IsFinishedPod(*run.pod())) {
      // What it leaves are its logs and its status. Forgotten before our copy of the pod says so,
      // it would be taken for one that was lost.
      Remove(uid);
    }
  }
  if (!sweeps) return;
  const absl::Duration end = options_.clock->Monotonic();
  next_sweep_ = end + std::min(kLongestWait, kSweepPause * (end - begun));
}

void PodExecutor::WriteStatus(const std::string& uid) {
  const PodRun& run = *runs_[uid];
  Json status = run.MakeStatus();
  const auto lost = lost_.find(uid);
  if (lost != lost_.end()) {
    status.FindMutable("conditions")
        ->Append(LostDevicesCondition(lost->second.first, lost->second.second));
  }
  const auto written = written_.find(uid);
  if (written != written_.end() && SameJson(written->second, status)) return;
  Json patch;
  SetField(&patch, {"metadata", "uid"}, uid);
  patch.Set("status", status);
  WriteOptions options;
  options.subresource = "status";
  const Json& pod = *run.pod();
  const Status result =
      store_->Patch(Pods(), {NamespaceOf(pod), NameOf(pod)}, PatchKind::kMerge, patch, options)
          .status();
  if (result.ok() || IsObjectNotFound(result) || IsConflict(result)) {
    // Whoever deleted it will be seen.
    written_[uid] = std::move(status);
    return;
  }
  written_.erase(uid);
  WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
      << "The status of a pod is not written: " << result.message();
}

void PodExecutor::FinishDeletion(const Json& pod) {
  DeleteOptions options;
  options.grace_seconds = 0;
  options.uid = UidOf(pod);
  const Status status = store_->Delete(Pods(), {NamespaceOf(pod), NameOf(pod)}, options).status();
  if (!status.ok() && !IsObjectNotFound(status) && !IsConflict(status)) {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(10)) << "A pod is not deleted: " << status.message();
    ComeAgain(pod);
  }
}

void PodExecutor::Remove(const std::string& uid) {
  if (const auto run = runs_.find(uid); run != runs_.end()) {
    const Json& pod = *run->second->pod();
    const auto named = uids_.find({NamespaceOf(pod), NameOf(pod)});
    if (named != uids_.end() && named->second == uid) uids_.erase(named);
    turns_.erase(run->second.get());
    runs_.erase(run);
  }
  stirred_.erase(uid);
  written_.erase(uid);
  lost_.erase(uid);
  if (volumes_ != nullptr) volumes_->Drop(uid);
}

void PodExecutor::WaitForNews() {
  std::vector<pollfd> poll_fds = {{wake_.get(), POLLIN, 0}};
  absl::Duration wait = kLongestWait;
  const absl::Duration monotonic = options_.clock->Monotonic();
  const absl::Time now = options_.clock->Now();
  std::vector<const std::string*> whose = {nullptr};
  for (const auto& [uid, run] : runs_) {
    for (const int fd : run->Descriptors()) {
      poll_fds.push_back({fd, POLLIN, 0});
      whose.push_back(&uid);
    }
    const auto turn = turns_.find(run.get());
    if (turn == turns_.end()) continue;
    const absl::Duration left =
        std::min(turn->second.due - now, turn->second.output_due - monotonic);
    if (left <= absl::ZeroDuration()) stirred_.insert(uid);
    wait = std::min(wait, left);
  }
  wait = std::max(std::min(wait, confiner_.due() - monotonic), absl::ZeroDuration());
  if (is_behind_) wait = absl::ZeroDuration();
  ::poll(poll_fds.data(), poll_fds.size(), PollTimeoutMs(wait));
  for (size_t i = 1; i < poll_fds.size(); ++i) {
    if (poll_fds[i].revents != 0) stirred_.insert(*whose[i]);
  }
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof(count));
}

}  // namespace weft::platform
