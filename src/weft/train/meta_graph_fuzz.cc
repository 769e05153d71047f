// SPDX-License-Identifier: Apache-2.0
// Any bytes as a MetaGraphDef and as a SavedModel: refused, or read, added to a program and written
// again.
#include <cstdint>

#include <google/protobuf/stubs/logging.h>

#include "weft/train/meta_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // it reports each string that is not UTF-8
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<weft::train::MetaGraph> graphs;
  if (auto meta = weft::train::ParseMetaGraph(bytes); meta.ok()) graphs.push_back(*std::move(meta));
  if (auto saved = weft::train::ParseSavedModel(bytes); saved.ok()) {
    for (weft::train::MetaGraph& meta : *saved) graphs.push_back(std::move(meta));
  }
  for (const weft::train::MetaGraph& meta : graphs) {
    weft::train::Program program;
    weft::train::ImportMetaGraph(meta, program).IgnoreError();
    const auto written = weft::train::SerializeMetaGraph(meta);
    if (written.ok() && !weft::train::ParseMetaGraph(*written).ok()) __builtin_trap();
  }
  return 0;
}
