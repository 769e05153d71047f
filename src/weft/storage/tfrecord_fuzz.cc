// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of records, of any compression: an error or records that write the same
// again.
#include <cstdlib>
#include <string>

#include "base/memory_files.h"
#include "weft/storage/tfrecord.h"

using weft::storage::Compression;
using weft::storage::RecordReader;
using weft::storage::RecordWriter;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  weft::MemoryFileSystem files;
  if (!weft::WriteFile(files, "in", bytes).ok()) abort();
  for (Compression compression : {Compression::kNone, Compression::kZlib, Compression::kGzip}) {
    auto reader = RecordReader::Open(files, "in", compression, 64);
    auto writer = RecordWriter::Create(files, "out");
    if (!reader.ok() || !writer.ok()) abort();
    std::string record;
    uint64_t total = 0;
    while (total < (1 << 20)) {
      const weft::StatusOr<bool> more = (*reader)->Next(&record);
      if (!more.ok() || !*more) break;
      total += record.size() + weft::storage::kRecordOverhead;
      if (!(*writer)->Write(record).ok()) abort();
    }
    if (!(*writer)->Close().ok()) abort();
    const auto out = weft::ReadFile(files, "out");
    if (!out.ok() || out->size() != total || (*reader)->offset() != total) abort();
    if (compression == Compression::kNone && bytes.compare(0, out->size(), *out) != 0) abort();
  }
  // The same bytes as the content of one sound record come back unchanged.
  auto writer = RecordWriter::Create(files, "one", Compression::kZlib);
  if (!writer.ok() || !(*writer)->Write(bytes).ok() || !(*writer)->Close().ok()) abort();
  auto reader = RecordReader::Open(files, "one", Compression::kZlib, 16);
  std::string record;
  if (!reader.ok()) abort();
  const weft::StatusOr<bool> more = (*reader)->Next(&record);
  if (!more.ok() || !*more || record != bytes) abort();
  return 0;
}
