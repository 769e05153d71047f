// SPDX-License-Identifier: Apache-2.0
// Graphs in files, in all the forms that TensorFlow writes.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "proto/tensorflow/saved_model.pb.h"

namespace weft::inspect {

struct GraphFile {
  std::string path;  // of the file that was read
  std::string form;  // "GraphDef", "MetaGraphDef" or "SavedModel", with " as text" if it is
  // One, or those of a SavedModel; of a GraphDef only graph_def is set.
  std::vector<tensorflow::MetaGraphDef> graphs;
};

// Reads a GraphDef, MetaGraphDef or SavedModel, binary or text; or the folder of a SavedModel, of
// checkpoints (the newest one's .meta, else graph.pbtxt); or a checkpoint's prefix. NotFound if
// there is none of these, InvalidArgument if the file is something else or malformed.
StatusOr<GraphFile> ReadGraphFile(FileSystem& files, const std::string& path);

// There is something of that name, and it is no folder.
bool IsFile(FileSystem& files, const std::string& path);

}  // namespace weft::inspect
