// SPDX-License-Identifier: Apache-2.0
// Any text as a `checkpoint` file: an error or a state that reads the same once written.
#include <cstdlib>
#include <string>

#include "base/memory_files.h"
#include "weft/storage/checkpoint_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::MemoryFileSystem files;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (!files.MakeDirectories("/d").ok() || !weft::WriteFile(files, "/d/checkpoint", text).ok()) {
    abort();
  }
  const auto state = weft::storage::ReadCheckpointState(files, "/d");
  if (!state.ok()) return 0;
  if (!weft::storage::WriteCheckpointState(files, "/d", *state).ok()) return 0;
  const auto again = weft::storage::ReadCheckpointState(files, "/d");
  if (!again.ok() || again->model_checkpoint_path != state->model_checkpoint_path ||
      again->all_model_checkpoint_paths != state->all_model_checkpoint_paths) {
    abort();
  }
  return 0;
}
