// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_volumes.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/log.h"
#include "base/posix_file.h"
#include "base/subprocess.h"
#include "platform/launch/expansion.h"
#include "platform/object/fields.h"
#include "platform/object/names.h"
#include "platform/object/pod_view.h"
#include "platform/object/quantity.h"
#include "platform/pods/container_run.h"
#include "platform/pods/host_path.h"

namespace weft::platform {
namespace {

constexpr char kAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr char kUsualMessagePath[] = "/dev/termination-log";
constexpr mode_t kOurs = 0700;
constexpr mode_t kEverybodys = 0777;

bool IsInMemory(const Json& volume) {
  return StringField(volume, {"emptyDir", "medium"}) == "Memory";
}

// No source is an empty folder.
bool IsEmptyFolder(const Json& volume) {
  return FindField(volume, {"emptyDir"}) != nullptr || volume.size() <= 1;
}

// A cluster adds it to all pods, for programs that talk to the API server.
bool IsAccount(const Json& pod, const Json& mount) {
  if (StringField(mount, {"mountPath"}) != kAccountFolder) return false;
  const Json* const volume = PodView(pod).FindVolume(StringField(mount, {"name"}));
  const Json* const sources =
      volume == nullptr ? nullptr : FindField(*volume, {"projected", "sources"});
  return sources != nullptr &&
         std::any_of(sources->items().begin(), sources->items().end(), [](const Json& source) {
           return FindField(source, {"serviceAccountToken"}) != nullptr;
         });
}

std::optional<gid_t> GroupOf(const Json& pod) {
  const Json* const group = FindField(pod, {"spec", "securityContext", "fsGroup"});
  // Nobody else may give a file away.
  if (group == nullptr || ::geteuid() != 0) return std::nullopt;
  return static_cast<gid_t>(group->AsInt().value_or(0));
}

Status MakeFolder(const std::string& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), "make", path);
  if (::chmod(path.c_str(), mode) != 0) return ErrnoStatus(errno, "set the mode of", path);
  return absl::OkStatus();
}

std::string KindOf(const Json& volume) {
  for (const JsonMember& member : volume.members())
    if (member.name != "name") return member.name;
  return "emptyDir";
}

}  // namespace

PodVolumes::PodVolumes(Options options)
    : options_(std::move(options)),
      claims_(options_.store, options_.clock, options_.events, options_.claim_folder) {}

PodVolumes::~PodVolumes() = default;

std::string PodVolumes::FolderOf(const Json& pod) const {
  return JoinPath(options_.folder, UidOf(pod));
}

Status PodVolumes::Mount(const Json& pod, const Json& container, ContainerCommand* command) {
  std::vector<Placement> placements;
  std::vector<std::string> elsewhere;  // what is not at its place already
  if (const Json* const mounts = FindField(container, {"volumeMounts"})) {
    for (const Json& mount : mounts->items()) {
      if (IsAccount(pod, mount)) continue;
      StatusOr<Placement> placement = Place(pod, mount, command->environment);
      if (!placement.ok()) {
        return Annotate(placement.status(),
                        absl::StrCat("Volume \"", StringField(mount, {"name"}), "\""));
      }
      if (placement->source != placement->target || placement->is_read_only)
        elsewhere.push_back(placement->target);
      placements.push_back(*std::move(placement));
    }
  }
  if (!elsewhere.empty() && MountNamespace::Probe().way == MountNamespace::Way::kNone) {
    return FailedPrecondition("Nothing can be mounted at ", absl::StrJoin(elsewhere, ", "),
                              ", since this machine gives weft no mount namespace (",
                              MountNamespace::Probe().why,
                              "): `weft doctor` says how to get one; else a hostPath must be where "
                              "it is mounted");
  }
  WEFT_ASSIGN_OR_RETURN(command->message_file,
                        MakeMessageFile(pod, container, !elsewhere.empty(), &placements));
  if (elsewhere.empty() && command->message_file.empty()) return absl::OkStatus();
  const std::string root = JoinPath(FolderOf(pod), "root");
  WEFT_RETURN_IF_ERROR(MakeFolder(options_.folder, kOurs));
  WEFT_RETURN_IF_ERROR(MakeFolder(root, kOurs));
  WEFT_ASSIGN_OR_RETURN(const std::vector<MountStep> steps,
                        PlanMounts(std::move(placements), root));
  WEFT_ASSIGN_OR_RETURN(command->mounts, MountNamespace::Make(steps, MountNamespace::Probe().way,
                                                              pods_[UidOf(pod)].memory.get()));
  return absl::OkStatus();
}

// At the usual path it costs a container that mounts nothing else a namespace for what it will
// hardly write; one that names another path wants it.
StatusOr<std::string> PodVolumes::MakeMessageFile(const Json& pod, const Json& container,
                                                  bool has_mounts,
                                                  std::vector<Placement>* placements) {
  const std::string path = StringField(container, {"terminationMessagePath"});
  const bool is_wanted = !path.empty() && (has_mounts || path != kUsualMessagePath);
  if (!is_wanted || MountNamespace::Probe().way == MountNamespace::Way::kNone) return std::string();
  const std::string folder = JoinPath(FolderOf(pod), "messages");
  WEFT_RETURN_IF_ERROR(MakeFolder(options_.folder, kOurs));
  WEFT_RETURN_IF_ERROR(MakeFolder(FolderOf(pod), kOurs));
  WEFT_RETURN_IF_ERROR(MakeFolder(folder, kOurs));
  Placement placement;
  const std::string name = StringField(container, {"name"});
  WEFT_RETURN_IF_ERROR(CheckContainerName(name));
  placement.source = JoinPath(folder, name);
  placement.target = path;
  placement.is_file = true;
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(WriteFile(files, placement.source, ""));
  if (::chmod(placement.source.c_str(), 0666) != 0)
    return ErrnoStatus(errno, "set the mode of", placement.source);
  placements->push_back(placement);
  return placement.source;
}

StatusOr<Placement> PodVolumes::Place(const Json& pod, const Json& mount,
                                      const std::vector<std::string>& environment) {
  const Json* const volume = PodView(pod).FindVolume(StringField(mount, {"name"}));
  if (volume == nullptr) return NotFound("is none of the pod's volumes");
  WEFT_ASSIGN_OR_RETURN(const Volume prepared, Prepare(pod, *volume));
  Placement placement;
  placement.source = prepared.path;
  placement.target = StringField(mount, {"mountPath"});
  // From the root, as a runtime takes it.
  if (!absl::StartsWith(placement.target, "/")) placement.target = "/" + placement.target;
  placement.is_read_only = prepared.is_read_only || BoolField(mount, {"readOnly"});
  placement.is_in_memory = prepared.is_in_memory;
  placement.is_ours = prepared.has_files;
  placement.is_file = prepared.is_file;
  std::string path = StringField(mount, {"subPath"});
  if (const std::string pattern = StringField(mount, {"subPathExpr"}); !pattern.empty()) {
    path = ExpandVariables(
        pattern, [&](const std::string& name) { return FindEnvironment(environment, name); });
  }
  if (path.empty()) return placement;
  if (prepared.is_in_memory) {
    return Unimplemented(
        "is in memory, of which weft mounts no subPath: leave it out, or the "
        "medium");
  }
  const bool may_make = !prepared.has_files && !prepared.is_read_only;
  WEFT_ASSIGN_OR_RETURN(placement.source, ResolveSubPath(prepared.path, path, may_make));
  placement.is_file = IsFile(placement.source);
  return placement;
}

StatusOr<PodVolumes::Volume> PodVolumes::Prepare(const Json& pod, const Json& volume) {
  Volume prepared;
  const std::string name = StringField(volume, {"name"});
  if (const NameProblems problems = LabelNameProblems(name); !problems.empty())
    return InvalidArgument("may not be called so, since that names a folder: ", problems[0]);
  prepared.path = absl::StrCat(FolderOf(pod), "/volumes/", name);
  if (const Json* const host_path = FindField(volume, {"hostPath"})) {
    WEFT_ASSIGN_OR_RETURN(const HostPath found, CheckHostPath(*host_path));
    if (found.was_unasked)
      options_.events->Record(
          pod, "Warning", "HostPathCreated",
          absl::StrCat("hostPath '", found.path, "' was not there: volume '", name,
                       "' begins empty. Where it must be there, write type: "
                       "Directory; where not, type: DirectoryOrCreate"));
    prepared.path = found.path;
    prepared.is_file = IsFile(prepared.path);
    return prepared;
  }
  if (const Json* const claim = FindField(volume, {"persistentVolumeClaim"})) {
    const VolumeClaims::Key key = {NamespaceOf(pod), StringField(*claim, {"claimName"})};
    WEFT_ASSIGN_OR_RETURN(prepared.path, claims_.FolderOf(key));
    pods_[UidOf(pod)].claims.insert(key);
    prepared.is_read_only = BoolField(*claim, {"readOnly"});
    return prepared;
  }
  if (FindField(volume, {"ephemeral"}) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(prepared.path, claims_.FolderOfPod(pod, volume));
    pods_[UidOf(pod)].claims.emplace(NamespaceOf(pod), absl::StrCat(NameOf(pod), "-", name));
    return prepared;
  }
  // Whatever is in there is for nobody but the pod.
  WEFT_RETURN_IF_ERROR(MakeFolder(options_.folder, kOurs));
  WEFT_RETURN_IF_ERROR(MakeFolder(FolderOf(pod), kOurs));
  if (HasVolumeFiles(volume)) {
    prepared.has_files = true;
    prepared.is_read_only = true;
    WEFT_RETURN_IF_ERROR(WriteFiles(pod, volume, prepared.path));
    return prepared;
  }
  if (IsInMemory(volume)) {
    prepared.is_in_memory = true;
    WEFT_RETURN_IF_ERROR(MakeMemory(pod));
    return prepared;
  }
  if (IsEmptyFolder(volume)) {
    WEFT_RETURN_IF_ERROR(MakeEmpty(pod, volume, prepared.path));
    return prepared;
  }
  return Unimplemented(
      "is of kind ", KindOf(volume),
      ", which weft does not mount: mount it on this machine, and write a hostPath");
}

Status PodVolumes::MakeEmpty(const Json& pod, const Json& /*volume*/, const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) return absl::OkStatus();  // of a container before
  const std::optional<gid_t> group = GroupOf(pod);
  WEFT_RETURN_IF_ERROR(MakeFolder(path, kEverybodys));
  if (!group.has_value()) return absl::OkStatus();
  if (::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)
    return ErrnoStatus(errno, "give to the group of the pod", path);
  return MakeFolder(path, kEverybodys | S_ISGID);
}

// One namespace for all of them, which those of its containers are copies of.
Status PodVolumes::MakeMemory(const Json& pod) {
  PodState& state = pods_[UidOf(pod)];
  if (state.memory != nullptr || MountNamespace::Probe().way == MountNamespace::Way::kNone)
    return absl::OkStatus();
  std::vector<MountStep> steps;
  for (const Json& volume : PodView(pod).volumes()) {
    if (!IsInMemory(volume)) continue;
    const std::string path =
        absl::StrCat(FolderOf(pod), "/volumes/", StringField(volume, {"name"}));
    WEFT_RETURN_IF_ERROR(MakeFolder(path, kEverybodys));
    int64_t size = 0;
    if (const Json* const limit = FindField(volume, {"emptyDir", "sizeLimit"})) {
      WEFT_ASSIGN_OR_RETURN(const int64_t thousandths, ParseQuantity(*limit));
      size = thousandths / 1000;
    }
    steps.push_back({MountStep::Kind::kMemory, path, "", kEverybodys, size});
  }
  WEFT_ASSIGN_OR_RETURN(state.memory, MountNamespace::Make(steps, MountNamespace::Probe().way));
  return absl::OkStatus();
}

Status PodVolumes::WriteFiles(const Json& pod, const Json& volume, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(VolumeFiles files, ReadVolumeFiles(options_.store, pod, volume));
  PodState& state = pods_[UidOf(pod)];
  const std::string name = StringField(volume, {"name"});
  const auto written = state.files.find(name);
  if (written != state.files.end() && written->second == files) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(WriteVolumeFiles(path, files, GroupOf(pod)));
  if (state.files.empty()) state.next_refresh = options_.clock->Monotonic() + options_.refresh;
  state.files[name] = std::move(files);
  return absl::OkStatus();
}

void PodVolumes::Refresh(const Json& pod) {
  const auto found = pods_.find(UidOf(pod));
  if (found == pods_.end() || found->second.files.empty()) return;
  PodState& state = found->second;
  const absl::Duration now = options_.clock->Monotonic();
  if (now < state.next_refresh) return;
  state.next_refresh = now + options_.refresh;
  std::vector<std::string> names;
  for (const auto& [name, files] : state.files) names.push_back(name);
  for (const std::string& name : names) {
    const Json* const volume = PodView(pod).FindVolume(name);
    if (volume == nullptr) continue;
    const Status status = WriteFiles(pod, *volume, absl::StrCat(FolderOf(pod), "/volumes/", name));
    if (status.ok()) continue;
    WEFT_LOG_EVERY(WARNING, absl::Minutes(1)) << "Volume " << name << " of pod " << NameOf(pod)
                                              << " stays as it was: " << status.message();
  }
}

void PodVolumes::Drop(const std::string& uid) {
  pods_.erase(uid);
  if (uid.empty() || options_.folder.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(JoinPath(options_.folder, uid), error);
  if (error) WEFT_LOG(WARNING) << "Volumes of a pod that is over stay: " << error.message();
}

void PodVolumes::Sweep(const std::set<std::string>& uids) {
  RealFileSystem files;
  const StatusOr<std::vector<std::string>> there = files.List(options_.folder);
  if (!there.ok()) return;
  for (const std::string& uid : *there)
    if (uids.count(uid) == 0) Drop(uid);
}

void PodVolumes::Tidy() {
  claims_.Tidy([this](const VolumeClaims::Key& key) {
    return std::any_of(pods_.begin(), pods_.end(),
                       [&](const auto& entry) { return entry.second.claims.count(key) != 0; });
  });
}

}  // namespace weft::platform
