// SPDX-License-Identifier: Apache-2.0
// Views of the file system that processes of ours enter: files and folders lie where they are told
// to, and nobody else sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/posix_file.h"
#include "base/status.h"

namespace weft {

// One step on the way to a namespace, in which paths mean what they mean to us.
struct MountStep {
  enum class Kind {
    kFolder,  // makes `target` with `mode`; one that is there is fine
    kFile,    // the same of an empty file
    kLink,    // makes `target` a symbolic link to `source`
    kBind,    // `source`, with what is mounted below it, at `target`
    kMemory,  // a new folder in memory at `target`, of at most `size_bytes` (0: half of the memory)
    kSeal,    // nobody writes to what is mounted at `target`
    kHide,    // binds of what lies around `target` leave out what is mounted there
    kRoot,    // `target`, on which something is mounted, is the root; the old one is gone
  };
  Kind kind = Kind::kFolder;
  std::string target;
  std::string source = {};
  mode_t mode = 0755;
  int64_t size_bytes = 0;
};

// Lives as long as this object, or a process in it. Thread-safe.
class MountNamespace {
 public:
  enum class Way {
    kPlain,  // we may mount
    kUser,   // in a user namespace, where only our own user and group have names
    kNone,
  };
  struct Support {
    Way way = Way::kNone;
    std::string why;  // of kNone, and of kUser why it is not plain
  };
  // What this system lets us do; tried once.
  static const Support& Probe();

  // A copy of ours, or of `base`, in which the steps were taken. Forks, so call it from one thread
  // at a time that reaps no strangers. The error names the step, and what the system said.
  static StatusOr<std::shared_ptr<const MountNamespace>> Make(const std::vector<MountStep>& steps,
                                                              Way way,
                                                              const MountNamespace* base = nullptr);
  MountNamespace(const MountNamespace&) = delete;
  MountNamespace& operator=(const MountNamespace&) = delete;

  // Takes the calling thread into it. False: errno says why. Safe after a fork.
  bool Enter() const;
  // Whether it lies in a user namespace of its own.
  bool has_user() const { return user_.is_open(); }

 private:
  MountNamespace(OwnedFd user, OwnedFd mounts)
      : user_(std::move(user)), mounts_(std::move(mounts)) {}
  const OwnedFd user_;
  const OwnedFd mounts_;
};

}  // namespace weft
