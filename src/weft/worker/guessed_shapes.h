// SPDX-License-Identifier: Apache-2.0
// Guesses about shapes that TensorFlow leaves at nodes, with sizes that are no sizes.
#pragma once

#include "proto/tensorflow/function.pb.h"
#include "proto/tensorflow/graph.pb.h"

namespace weft::worker {

// Drops them, so that the rest reads as a graph of anybody's.
inline void DropGuessedShapes(google::protobuf::RepeatedPtrField<tensorflow::NodeDef>* nodes) {
  for (tensorflow::NodeDef& node : *nodes) {
    node.mutable_attr()->erase("_input_shapes");
    node.mutable_attr()->erase("_output_shapes");
  }
}
inline void DropGuessedShapes(tensorflow::FunctionDef* function) {
  DropGuessedShapes(function->mutable_node_def());
}
inline void DropGuessedShapes(tensorflow::GraphDef* graph) {
  DropGuessedShapes(graph->mutable_node());
  for (tensorflow::FunctionDef& function : *graph->mutable_library()->mutable_function())
    DropGuessedShapes(&function);
}

}  // namespace weft::worker
