// SPDX-License-Identifier: Apache-2.0
// A checkpoint whose index is a sound table of arbitrary entries over arbitrary data: what lies
// behind the checksums. Input: pairs of length-prefixed key and value until a zero length, then the
// data file.
#include <cstdlib>
#include <map>
#include <string>

#include <google/protobuf/stubs/logging.h>

#include "base/memory_files.h"
#include "weft/storage/tensor_bundle.h"

namespace {

std::string Take(absl::string_view* input) {
  if (input->empty()) return {};
  const size_t size = static_cast<uint8_t>(input->front());
  input->remove_prefix(1);
  const std::string taken(input->substr(0, size));
  input->remove_prefix(taken.size());
  return taken;
}

void WriteIndex(weft::FileSystem& files, const std::map<std::string, std::string>& entries) {
  auto file = files.OpenWrite("m.index", weft::WriteMode::kTruncate);
  if (!file.ok()) abort();
  const auto sink =
      weft::storage::MakeSink(*std::move(file), "m.index", weft::storage::Compression::kNone);
  weft::storage::TableWriter table(sink.get());
  for (const auto& [key, value] : entries) {
    if (!table.Add(key, value).ok()) abort();
  }
  if (!table.Finish().ok() || !sink->Close().ok()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const loud =
      google::protobuf::SetLogHandler(nullptr);  // it tells of every bad string
  static_cast<void>(loud);
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  // The header of a bundle of one shard, which an entry of the input may replace.
  std::map<std::string, std::string> entries = {{"", std::string("\x08\x01\x1a\x02\x08\x01", 6)}};
  while (!input.empty() && input.front() != 0) {
    const std::string key = Take(&input);
    entries[key] = Take(&input);
  }
  if (!input.empty()) {
    input.remove_prefix(1);
    if (!input.empty() && input.front() == 1) entries[""] = Take(&input);
  }
  weft::MemoryFileSystem files;
  WriteIndex(files, entries);
  if (!weft::WriteFile(files, "m.data-00000-of-00001", input).ok()) abort();
  const auto reader = weft::storage::BundleReader::Open(files, "m");
  if (!reader.ok()) return 0;
  (*reader)->List().IgnoreError();
  const weft::storage::TensorSlice slice = {.extents = {{0, 1}, {0, 1}}};
  for (const auto& [key, value] : entries) {
    (*reader)->Read(key).IgnoreError();
    (*reader)->ReadSlice(key, slice).IgnoreError();
  }
  return 0;
}
