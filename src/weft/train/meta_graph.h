// SPDX-License-Identifier: Apache-2.0
// A graph and how it is used, as TensorFlow writes it beside checkpoints and in SavedModels
// (meta_graph.proto, saved_model.proto), and the bytes of both.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/node_def.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"

namespace weft::train {

// A tensor that a signature takes or gives.
struct SignatureTensor {
  std::string name;  // "x:0"; of a sparse one, that of its values; empty for other composite ones
  DType dtype = DType::kInvalid;
  PartialShape shape;
  std::string indices, dense_shape;  // of a sparse one
  std::string serialized;            // the whole message of other composite ones
};

// A way to call a graph.
struct Signature {
  std::string method = "tensorflow/serving/predict";
  std::map<std::string, SignatureTensor> inputs, outputs;  // by the caller's names
  std::map<std::string, Tensor> defaults = {};             // of inputs that may be left out
};
// The signature of these tensors of a graph.
Signature MakeSignature(GraphBuilder& builder, const std::map<std::string, Endpoint>& inputs,
                        const std::map<std::string, Endpoint>& outputs);

// A variable, by the names of its nodes and tensors.
struct VariableNames {
  std::string variable;       // "w:0"
  std::string initializer;    // "w/Assign"
  std::string value;          // "w/Read:0"
  std::string initial_value;  // "w/Initializer/Fill:0"
  bool is_resource = true;
  bool is_trainable = true;
  bool is_local = false;
  // Of a part: the whole's name and shape, and where the part begins and how large it is.
  std::string whole_name;
  std::vector<int64_t> whole_shape, begin, size;
};

// A file that a graph reads: the tensor that holds its path, and its name in the model's folder.
struct AssetFile {
  std::string tensor;
  std::string file;
};

struct MetaGraph {
  GraphDef graph;
  std::vector<std::string> tags;
  std::map<std::string, Signature> signatures;
  std::vector<VariableNames> variables;
  // Collections of names of nodes and tensors, such as "train_op".
  std::map<std::string, std::vector<std::string>> collections;
  std::vector<AssetFile> assets;
  SaverNames saver;  // empty without one
  std::string tensorflow_version;
  // The rest of the message that it was read from: what is written says it again.
  std::string rest;
};

// InvalidArgument says what is no such message, or which part of it is malformed.
StatusOr<MetaGraph> ParseMetaGraph(absl::string_view bytes);
StatusOr<std::vector<MetaGraph>> ParseSavedModel(absl::string_view bytes);
// Equal graphs give equal bytes. InvalidArgument for what protobuf cannot carry (2 GB).
StatusOr<std::string> SerializeMetaGraph(const MetaGraph& meta);
StatusOr<std::string> SerializeSavedModel(const std::vector<MetaGraph>& graphs);

// What stands in `program` now, with the nodes of `saver` (null: without).
MetaGraph MetaGraphOf(Program& program, const Saver* saver);
// Adds the graph of `meta` to `program`, and its resource variables to those of the program: they
// can be trained, saved and restored like its own. Reference variables stay what they are: nodes,
// which steps of the graph change. InvalidArgument, as ImportGraph gives, leaves the graph as it
// was.
Status ImportMetaGraph(const MetaGraph& meta, Program& program);

}  // namespace weft::train
