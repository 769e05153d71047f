// SPDX-License-Identifier: Apache-2.0
// How requests reach into pods that run here: programs beside their own, ports, what they use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "base/posix_file.h"
#include "base/status.h"
#include "base/subprocess.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// The pod as it is now. Called again and again on threads that it must not hold.
using PodLookup = std::function<StatusOr<ObjectPtr>(const ObjectName& name)>;

struct PodProgram {
  ObjectName pod;
  std::string container;
  std::vector<std::string> argv;
  bool takes_input = false;
  bool has_terminal = false;
};

// What a client is connected with; closed where there is nothing.
struct PodStreams {
  OwnedFd in;
  OwnedFd out;
  OwnedFd err;
  OwnedFd terminal;  // whose size the client says
  // That was started for it. Null: the container's own, which goes on when the client goes; when
  // `out` and `err` end it has ended.
  std::unique_ptr<Subprocess> process;
};

struct ContainerUsage {
  ObjectName pod;
  std::string container;
  std::string node;
  double processors = 0;     // in use, on average over `window`
  int64_t memory_bytes = 0;  // that only its end would give back
};

struct PodUsage {
  absl::Time time;
  absl::Duration window;
  std::vector<ContainerUsage> containers;
};

// Thread-safe; calls may block for a second.
class PodAccess {
 public:
  virtual ~PodAccess() = default;
  // Called on a thread that stays as long as the connection.
  using Start = absl::AnyInvocable<StatusOr<PodStreams>()>;
  // NotFound and FailedPrecondition say why there is no such container, or why it does not run.
  virtual StatusOr<Start> Prepare(const PodProgram& program) = 0;
  // As a program without argv: the container's own.
  virtual StatusOr<Start> Attach(const PodProgram& program) = 0;
  // A connection, which does not block, to what listens on this port of the pod.
  virtual StatusOr<OwnedFd> Connect(const ObjectName& pod, int port) = 0;
  virtual StatusOr<PodUsage> Measure() = 0;
};

}  // namespace weft::platform
