// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/pipeline/fingerprint_kernel.h"

#include "weft/data/dataset_graph.h"
#include "weft/graph/graph_proto.h"
#include "weft/ops/fingerprint.h"

namespace weft::ops::pipeline {

StatusOr<uint64_t> FingerprintOf(const weft::data::Dataset& dataset) {
  WEFT_ASSIGN_OR_RETURN(const GraphDef graph,
                        weft::data::GraphOf(dataset, weft::data::StateInGraph::kLeaveOut));
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, SerializeGraphDef(graph));
  return Fingerprint64(bytes);
}

}  // namespace weft::ops::pipeline
