// SPDX-License-Identifier: Apache-2.0
// The parent of a server process: it holds its memory, sees it die, and starts it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "supervisor/kept_memory.h"

namespace weft::supervisor {

// Under this name the child finds what it inherits: the two descriptors and the number of its
// start.
inline constexpr char kInheritanceVariable[] = "WEFT_KEPT_MEMORY";

struct SuperviseOptions {
  std::string program;            // its file
  std::vector<std::string> argv;  // of the child
  uint64_t data_bytes = 0;        // the most that its tensors may take
  // A child that was killed so often in a row, each within a second of its start, is not started
  // again.
  int most_quick_deaths = 20;
};

// Runs the program as its child until that ends by itself, and gives what a shell would: its code.
// A child that SIGKILL ends is started again with all its memory; one that another signal ends, but
// for those that this process was asked to pass on (SIGTERM, SIGINT, SIGHUP), with none. Call it in
// a process that has one thread; it returns after the last child has ended. A child does not
// outlive this process.
StatusOr<int> Supervise(const SuperviseOptions& options);

// The same with this program and the words that it was called with.
StatusOr<int> SuperviseThisProgram(uint64_t data_bytes);
// Whether WEFT_SUPERVISED asks for it.
bool IsAskedFor();

// What this process got from its supervisor.
struct Inheritance {
  KeptFiles files;
  int64_t starts = 1;
};
// Once: the descriptors close on exec, and the variable is taken out of the environment. Nothing
// where there is no supervisor; InvalidArgument where the variable makes no sense.
StatusOr<std::optional<Inheritance>> TakeInheritance();
// Whether TakeInheritance would give something.
bool HasInheritance();

}  // namespace weft::supervisor
