// SPDX-License-Identifier: Apache-2.0
// The session of a program that runs its graph itself.
#pragma once

#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/session/session.h"

namespace weft::session {

struct DirectOptions {
  const Catalogue* catalogue = nullptr;  // required
  DeviceFactory* devices = nullptr;      // required; the first device is the default
  int num_threads = 0;                   // 0: the cores this process may use
  bool soft_placement = true;
  bool fold = true;
  bool fuse = true;
  bool deterministic = false;
  FileSystem* files = nullptr;  // null: the machine's own
  // Where kernels that wait report it. Null: to the log, once they have waited for long.
  WaitRegistry* waits = nullptr;
};

// A session on devices of this process, with variables of its own.
StatusOr<std::unique_ptr<Session>> NewDirectSession(const DirectOptions& options);

}  // namespace weft::session
