// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of separated values: records come to an end, and hold no more than there was.
#include <cstdint>
#include <string>
#include <vector>

#include "base/memory_files.h"
#include "weft/data/csv_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  weft::MemoryFileSystem files;
  if (!weft::WriteFile(files, "/f", bytes).ok()) __builtin_trap();
  auto file = files.OpenRead("/f");
  if (!file.ok()) __builtin_trap();
  const weft::data::CsvForm form{.delimiter = static_cast<char>(data[0]), .quotes = size % 2 == 0};
  weft::data::CsvReader reader(
      form, weft::storage::MakeSource(*std::move(file), "/f", weft::storage::Compression::kNone));
  size_t held = 0, records = 0;
  std::vector<std::string> fields;
  while (true) {
    const weft::StatusOr<bool> found = reader.Next(&fields);
    if (found.ok() && !*found) break;
    for (const std::string& field : fields) held += field.size();
    if (++records > bytes.size() || held > bytes.size()) __builtin_trap();
  }
  return 0;
}
