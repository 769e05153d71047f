// SPDX-License-Identifier: Apache-2.0
// The volumes of pods, at the places where their containers expect them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/clock.h"
#include "base/mount_namespace.h"
#include "base/status.h"
#include "platform/pods/container_environment.h"
#include "platform/pods/mount_plan.h"
#include "platform/pods/volume_claims.h"
#include "platform/pods/volume_files.h"

namespace weft::platform {

// Not thread-safe. Borrows store, clock and events.
class PodVolumes {
 public:
  struct Options {
    ObjectStore* store = nullptr;
    const Clock* clock = nullptr;
    EventRecorder* events = nullptr;
    std::string folder;                          // <folder>/<pod's uid>/volumes/<name>
    std::string claim_folder;                    // empty: claims are a cluster's
    absl::Duration refresh = absl::Seconds(10);  // how old the files of a config map may be
  };
  explicit PodVolumes(Options options);
  ~PodVolumes();

  // Tells the command which namespace its processes enter, none when the container mounts nothing
  // that is not where it shall be, and the file of its termination message. The error says which
  // volume is not there yet, and why.
  Status Mount(const Json& pod, const Json& container, ContainerCommand* command);
  // The files of its config maps and the like are as the store has them now, when it is time.
  void Refresh(const Json& pod);
  // The pod is over: what was its own goes.
  void Drop(const std::string& uid);
  // After a start: goes what is of none of these. Once.
  void Sweep(const std::set<std::string>& uids);
  // Claims that were deleted go once no pod uses them.
  void Tidy();

 private:
  struct Volume {
    std::string path;
    bool is_read_only = false;
    bool is_in_memory = false;
    bool has_files = false;
    bool is_file = false;
  };
  struct PodState {
    std::map<std::string, VolumeFiles> files;  // what was written, by volume
    std::set<VolumeClaims::Key> claims;
    std::shared_ptr<const MountNamespace> memory;  // where its volumes in memory are
    absl::Duration next_refresh;
  };
  std::string FolderOf(const Json& pod) const;
  // Empty when there is no place for one.
  StatusOr<std::string> MakeMessageFile(const Json& pod, const Json& container, bool has_mounts,
                                        std::vector<Placement>* placements);
  StatusOr<Volume> Prepare(const Json& pod, const Json& volume);
  Status MakeEmpty(const Json& pod, const Json& volume, const std::string& path);
  Status MakeMemory(const Json& pod);
  Status WriteFiles(const Json& pod, const Json& volume, const std::string& path);
  StatusOr<Placement> Place(const Json& pod, const Json& mount,
                            const std::vector<std::string>& environment);

  const Options options_;
  VolumeClaims claims_;
  std::map<std::string, PodState> pods_;  // by uid
};

}  // namespace weft::platform
