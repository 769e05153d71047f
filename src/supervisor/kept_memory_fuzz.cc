// SPDX-License-Identifier: Apache-2.0
// Whatever an earlier process left in the directory, opening it ends with a status and reads and
// writes nothing outside of the two files.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/kept_memory.h"

namespace {

constexpr uint64_t kData = 1 << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::supervisor::KeptMemory;
  weft::StatusOr<weft::supervisor::KeptFiles> files = weft::supervisor::MakeKeptFiles(kData);
  void* const memory =
      files.ok() ? mmap(nullptr, kData, PROT_READ | PROT_WRITE, MAP_SHARED, files->data.get(), 0)
                 : MAP_FAILED;
  if (memory == MAP_FAILED) return 0;
  auto* const bytes = static_cast<std::byte*>(memory);
  // With the header as it is made, so that what follows it is looked at.
  KeptMemory::Open(files->control.get(), bytes, kData).status().IgnoreError();
  const size_t third = size / 3;
  const off_t places[] = {8, 4096, 4096 + 512 * static_cast<off_t>(KeptMemory::kMostEntries)};
  for (size_t i = 0; i < 3; ++i) {
    if (pwrite(files->control.get(), data + i * third, third, places[i]) < 0) break;
  }
  weft::StatusOr<std::unique_ptr<KeptMemory>> opened =
      KeptMemory::Open(files->control.get(), bytes, kData);
  if (opened.ok()) {
    uint64_t sum = 0;
    for (const auto& [name, place] : (*opened)->found()) {
      for (uint64_t i = 0; i < place.bytes; ++i)
        sum += static_cast<uint64_t>(bytes[place.offset + i]);
    }
    if (sum == 1) (*opened)->EntryOf("one").status().IgnoreError();
  }
  opened = weft::InvalidArgument("done");
  munmap(memory, kData);
  return 0;
}
