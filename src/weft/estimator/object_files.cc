// SPDX-License-Identifier: Apache-2.0
// Weights as TensorFlow's checkpoints of objects: what Keras 2's save_weights(path) writes.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "proto/tensorflow/object_graph.pb.h"
#include "weft/estimator/weight_files.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::estimator {
namespace {

using tensorflow::TrackableObjectGraph;

constexpr char kGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr char kValue[] = "VARIABLE_VALUE";

// Lists have numbers among objects: "/cell/cells/lstm_cell" and "/cell/cells/gru_cell" of one layer
// are "/cell/cells/0" and "/cell/cells/1". `seen` holds those of all layers so far, in order.
std::string Numbered(const std::string& layer, const std::string& inner,
                     std::map<std::string, std::vector<std::string>>* seen) {
  static constexpr const char kCells[] = "/cell/cells/";
  if (!absl::StartsWith(inner, kCells)) return inner;
  std::vector<std::string>& cells = (*seen)[layer];
  auto found = std::find(cells.begin(), cells.end(), inner);
  if (found == cells.end()) found = cells.insert(cells.end(), inner);
  return absl::StrCat(kCells, found - cells.begin());
}

// Where Keras 2 keeps a weight among objects, as names from object to object:
// layer_with_weights-0, cell, kernel.
std::map<const Weight*, std::string> ObjectPaths(Model& model) {
  std::map<std::string, std::string> layer_at;  // by folder in archives
  int with_weights = 0;
  const std::vector<std::string> folders = model.network().Folders();
  const std::vector<LayerWeights> layers = WeightsByLayer(model);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].weights.empty()) continue;
    layer_at["layers/" + folders[i]] = absl::StrCat("layer_with_weights-", with_weights++);
  }
  std::map<const Weight*, std::string> paths;
  std::map<std::string, std::vector<std::string>> cells;
  const auto places = ArchivePlaces(model, 2);
  for (const auto& [weight, place] : places) {
    const std::string folder = place.place.substr(0, place.place.rfind("/vars/"));
    const size_t end = folder.find('/', std::string("layers/").size());
    const std::string layer = folder.substr(0, end);
    const std::string inner = end == folder.npos ? "" : folder.substr(end);
    paths[weight] = absl::StrCat(layer_at[layer], Numbered(layer, inner, &cells),
                                 weight->name.substr(weight->name.rfind('/')));
  }
  return paths;
}

// The child `name` of `node`, made if need be.
int Child(int node, const std::string& name, TrackableObjectGraph* graph) {
  for (const auto& child : graph->nodes(node).children()) {
    if (child.local_name() == name) return child.node_id();
  }
  const int made = graph->nodes_size();
  graph->add_nodes()->mutable_has_checkpoint_values()->set_value(true);
  auto* child = graph->mutable_nodes(node)->add_children();
  child->set_node_id(made);
  child->set_local_name(name);
  return made;
}

}  // namespace

Status SaveObjects(Model& model, const WeightValues& values, const std::string& prefix) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const auto bundle, storage::BundleWriter::Create(files, prefix));
  TrackableObjectGraph graph;
  graph.add_nodes()->mutable_has_checkpoint_values()->set_value(true);
  for (const auto& [weight, path] : ObjectPaths(model)) {
    int node = 0;
    for (const auto name : absl::StrSplit(path, '/')) node = Child(node, std::string(name), &graph);
    auto* attribute = graph.mutable_nodes(node)->add_attributes();
    attribute->set_name(kValue);
    attribute->set_full_name(weight->name);
    attribute->set_checkpoint_key(absl::StrCat(path, "/.ATTRIBUTES/", kValue));
    WEFT_RETURN_IF_ERROR(bundle->Add(attribute->checkpoint_key(), values.at(weight->name)));
  }
  WEFT_RETURN_IF_ERROR(
      bundle->Add(kGraphKey, Tensor::Scalar<std::string>(graph.SerializeAsString())));
  return bundle->Finish();
}

StatusOr<std::vector<NamedWeight>> ReadObjects(Model& model, const std::string& prefix) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const auto bundle, storage::BundleReader::Open(files, prefix));
  WEFT_ASSIGN_OR_RETURN(const Tensor text, bundle->Read(kGraphKey));
  TrackableObjectGraph graph;
  if (text.dtype() != DType::kString || text.num_elements() != 1 ||
      !graph.ParseFromString(text.data<std::string>()[0]) || graph.nodes_size() == 0) {
    return DataLoss("Checkpoint '", prefix, "': its objects cannot be read");
  }
  const std::map<const Weight*, std::string> paths = ObjectPaths(model);
  std::vector<NamedWeight> read;
  for (const LayerWeights& layer : WeightsByLayer(model)) {
    for (const Weight* weight : layer.weights) {
      int node = 0;
      for (const auto name : absl::StrSplit(paths.at(weight), '/')) {
        int next = -1;
        for (const auto& child : graph.nodes(node).children()) {
          if (child.local_name() == name) next = child.node_id();
        }
        if (next < 0 || next >= graph.nodes_size()) {
          return NotFound(layer.description, ": checkpoint '", prefix, "' has no object '",
                          paths.at(weight), "' for weight '", weight->name, "'");
        }
        node = next;
      }
      std::string key;
      for (const auto& attribute : graph.nodes(node).attributes()) {
        if (attribute.name() == kValue) key = attribute.checkpoint_key();
      }
      WEFT_ASSIGN_OR_RETURN(const Tensor value, bundle->Read(key));
      WEFT_ASSIGN_OR_RETURN(NamedWeight fitting, Fitting(*weight, value, layer.description));
      read.push_back(std::move(fitting));
    }
  }
  return read;
}

}  // namespace weft::estimator
