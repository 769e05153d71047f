// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file: described or refused, and its graph, if it is one, checked.
#include <cstdint>
#include <memory>

#include <google/protobuf/stubs/logging.h>

#include "base/memory_files.h"
#include "base/threads.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/inspect/check_graph.h"
#include "weft/inspect/describe.h"
#include "weft/inspect/graph_file.h"
#include "weft/ops/catalogue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each string that is not UTF-8
  static auto* const threads = new weft::ThreadPool("fuzz", 1);
  static auto* const device =
      weft::MakeCpuDevice({.job = "localhost", .replica = 0, .task = 0}, 0, threads).release();
  weft::MemoryFileSystem files;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  // As a file of its own, and as the index of a checkpoint.
  for (const char* path : {"/file", "/model.index"}) {
    if (!weft::WriteFile(files, path, bytes).ok()) return 0;
    for (const char* tensor : {"", "w"}) {
      const auto described = weft::inspect::DescribeFile(files, path, {.tensor = tensor});
      if (described.ok() && described->json.Dump().empty()) __builtin_trap();
    }
  }
  const auto graphs = weft::inspect::ReadGraphFile(files, "/file");
  if (!graphs.ok()) return 0;
  for (const auto& meta : graphs->graphs) {
    const auto report =
        weft::inspect::CheckGraph(meta.graph_def(), weft::StandardCatalogue(), device);
    if (!report.ok() && report.Text().empty()) __builtin_trap();
  }
  return 0;
}
