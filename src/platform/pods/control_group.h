// SPDX-License-Identifier: Apache-2.0
// Control groups of the second version, in which the kernel holds a container to its memory and its
// processor time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/posix_file.h"
#include "base/status.h"

namespace weft::platform {

// Of one run of a container. Its destructor kills what is left in it. Not thread-safe.
class ControlGroup {
 public:
  ControlGroup(std::string folder, OwnedFd members)
      : folder_(std::move(folder)), members_(std::move(members)) {}
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  int members() const { return members_.get(); }  // SpawnOptions::control_group
  // The kernel killed what was in it because its memory was at an end.
  bool HasRunOut() const;

 private:
  const std::string folder_;
  const OwnedFd members_;
};

// The place below which groups are made. Its destructor removes it. Not thread-safe.
class ControlGroups {
 public:
  // In the group that we are in, or one above it, where the memory controller is handed down and we
  // may write. Unavailable says why there is none. `root` is where the hierarchy is mounted, `own`
  // our group in it.
  static StatusOr<std::unique_ptr<ControlGroups>> Open(const std::string& root,
                                                       const std::string& own);
  // Of this system.
  static StatusOr<std::unique_ptr<ControlGroups>> Open();
  ~ControlGroups();
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  bool has_processors() const { return has_processors_; }
  // Zero: no limit.
  StatusOr<std::unique_ptr<ControlGroup>> Make(const std::string& name, int64_t memory_bytes,
                                               int64_t processor_thousandths);

 private:
  ControlGroups(std::string folder, bool has_processors)
      : folder_(std::move(folder)), has_processors_(has_processors) {}
  const std::string folder_;
  const bool has_processors_;
};

}  // namespace weft::platform
