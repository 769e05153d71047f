// SPDX-License-Identifier: Apache-2.0
// Builds graphs by op name: what gradient functions and the generated constructors write with.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/known_shapes.h"

namespace weft {

// One argument of an op: a tensor, or a list of tensors for N * T and list(type) arguments.
class Argument {
 public:
  Argument(Endpoint tensor)
      : tensors_{tensor} {}                // NOLINT(google-explicit-constructor): reads well
  Argument(std::vector<Endpoint> tensors)  // NOLINT(google-explicit-constructor)
      : tensors_(std::move(tensors)), is_list_(true) {}
  const std::vector<Endpoint>& tensors() const { return tensors_; }
  bool is_list() const { return is_list_; }

 private:
  std::vector<Endpoint> tensors_;
  bool is_list_ = false;
};

using Attrs = std::initializer_list<std::pair<const char*, AttrValue>>;

// Adds nodes to a graph with the scope's name prefix, device, control inputs and colocation. The
// first error sticks: later calls return empty endpoints, and status() tells it. Not thread-safe;
// the graph must outlive it.
class GraphBuilder {
 public:
  explicit GraphBuilder(Graph* graph) : graph_(graph) {}

  Graph& graph() const { return *graph_; }
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  // Keeps the first error.
  void Fail(Status status);

  // Adds a node of `op`. Type attributes and counts are taken from the inputs where `attrs` does
  // not say. `name` is made unique; empty means the op's name. Null on error, which shapes that do
  // not fit the op are too.
  Node* AddNode(absl::string_view op, const std::vector<Argument>& inputs, AttrMap attrs = {},
                absl::string_view name = "");
  // The same; gives output 0.
  Endpoint Op(absl::string_view op, const std::vector<Argument>& inputs, Attrs attrs = {},
              absl::string_view name = "");
  Endpoint Constant(const Tensor& value, absl::string_view name = "Const");
  template <typename T>
  Endpoint Scalar(T value) {
    return Constant(Tensor::Scalar<T>(value));
  }

  // What is known of a tensor's shape before any step; unknown for an empty endpoint.
  PartialShape ShapeOf(const Endpoint& tensor) { return shapes_.Of(tensor); }

  // What later nodes get: a prefix of names, a device, control inputs, a colocation.
  void PushName(absl::string_view name);
  void PopName();
  const std::string& name_prefix() const { return prefix_; }
  void set_device(std::string device) { device_ = std::move(device); }
  const std::string& device() const { return device_; }
  void set_control_inputs(std::vector<Node*> nodes) { controls_ = std::move(nodes); }
  const std::vector<Node*>& control_inputs() const { return controls_; }
  // Later nodes carry _class = ["loc:@name"]; empty ends it.
  void set_colocation(std::string name) { colocation_ = std::move(name); }
  const std::string& colocation() const { return colocation_; }

 private:
  Status InferAttrs(const OpSchema& schema, const std::vector<Argument>& inputs,
                    AttrMap* attrs) const;

  Graph* const graph_;
  Status status_;
  std::string prefix_;
  std::vector<size_t> prefix_lengths_;
  std::string device_;
  std::vector<Node*> controls_;
  std::string colocation_;
  KnownShapes shapes_;
};

}  // namespace weft
