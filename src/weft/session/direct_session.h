// SPDX-License-Identifier: Apache-2.0
// The session of a program that runs its graph itself.
#pragma once

#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/session/session.h"

namespace weft::session {

struct DirectOptions {
  const Catalogue* catalogue = nullptr;  // required
  int num_threads = 0;                   // 0: the cores this process may use
  int num_cpu_devices = 1;
  bool soft_placement = true;
  bool fold = true;
  bool fuse = true;
  bool deterministic = false;
  FileSystem* files = nullptr;  // null: the machine's own
};

// A session on CPU devices of this process, with variables of its own.
StatusOr<std::unique_ptr<Session>> NewDirectSession(const DirectOptions& options);

}  // namespace weft::session
