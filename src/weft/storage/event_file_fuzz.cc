// SPDX-License-Identifier: Apache-2.0
// Any bytes as an event file, and as the event in a sound record: an error or an event.
#include <cstdlib>
#include <string>

#include <google/protobuf/stubs/logging.h>

#include "base/memory_files.h"
#include "proto/tensorflow/event.pb.h"
#include "weft/storage/event_file.h"
#include "weft/storage/summary.h"

namespace {

void ReadAll(weft::FileSystem& files, const std::string& path) {
  auto reader = weft::storage::EventFileReader::Open(files, path);
  if (!reader.ok()) abort();
  tensorflow::Event event;
  while (true) {
    const weft::StatusOr<bool> more = (*reader)->Next(&event);
    if (!more.ok() || !*more) return;
    const std::string summary = event.summary().SerializeAsString();
    weft::storage::MergeSummaries({summary, summary}).IgnoreError();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const loud =
      google::protobuf::SetLogHandler(nullptr);  // it tells of every bad string
  static_cast<void>(loud);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  weft::MemoryFileSystem files;
  if (!weft::WriteFile(files, "raw", bytes).ok()) abort();
  ReadAll(files, "raw");
  auto writer = weft::storage::RecordWriter::Create(files, "sound");
  if (!writer.ok() || !(*writer)->Write(bytes).ok() || !(*writer)->Close().ok()) abort();
  ReadAll(files, "sound");
  return 0;
}
