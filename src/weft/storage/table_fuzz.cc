// SPDX-License-Identifier: Apache-2.0
// Any bytes as a table file, and as one block of it: an error or entries in order.
#include <cstdlib>
#include <memory>
#include <string>

#include "base/memory_files.h"
#include "weft/storage/table.h"

namespace {

void WalkBlock(const std::string& bytes) {
  const auto block = std::make_shared<const std::string>(bytes);
  weft::storage::BlockCursor cursor(block);
  std::string previous;
  for (bool first = true; cursor.Valid(); cursor.Next(), first = false) {
    if (!first && cursor.key() <= previous) abort();
    previous = std::string(cursor.key());
  }
  for (const size_t cut : {size_t{0}, bytes.size() / 2, bytes.size()}) {
    weft::storage::BlockCursor seeker(block);
    const absl::string_view target = absl::string_view(bytes).substr(0, cut);
    seeker.Seek(target);
    if (seeker.Valid() && seeker.key() < target) abort();
  }
}

void WalkFile(const std::string& bytes) {
  weft::MemoryFileSystem files;
  if (!weft::WriteFile(files, "t", bytes).ok()) abort();
  const auto table = weft::storage::Table::Open(files, "t");
  if (!table.ok()) return;
  weft::storage::Table::Iterator it(table->get());
  while (it.Valid()) it.Next();
  (*table)->Find("a").IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  WalkBlock(bytes);
  WalkFile(bytes);
  return 0;
}
