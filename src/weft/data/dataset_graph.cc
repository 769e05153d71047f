// SPDX-License-Identifier: Apache-2.0
#include "weft/data/dataset_graph.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include "weft/kernel/function_library.h"

namespace weft::data {
namespace {

constexpr int kMostNested = 1000;  // datasets above each other

class Writer {
 public:
  explicit Writer(StateInGraph state) : state_(state) {}

  StatusOr<std::string> Add(const Dataset& dataset) {
    const auto [known, is_new] = names_.try_emplace(&dataset);
    if (!is_new) return known->second;
    const DatasetOrigin* const origin = dataset.origin();
    if (origin == nullptr) {
      return Unimplemented("The pipeline holds a dataset that no op made: it has no graph");
    }
    if (++depth_ > kMostNested) {
      return InvalidArgument("More than ", kMostNested, " datasets stand above each other");
    }
    NodeDef node{.name = "", .op = origin->op, .device = "", .inputs = {}, .attrs = origin->attrs};
    for (const Tensor& input : origin->inputs) {
      WEFT_ASSIGN_OR_RETURN(std::string name, AddInput(input, origin->op));
      node.inputs.push_back(std::move(name));
    }
    for (const auto& [name, value] : origin->attrs) {
      WEFT_RETURN_IF_ERROR(AddFunctions(value, origin->functions.get()));
    }
    --depth_;
    std::string name = absl::StrCat(origin->op, "/_", def_.nodes.size());
    node.name = name;
    def_.nodes.push_back(std::move(node));
    names_[&dataset] = name;
    return name;
  }

  GraphDef Take(const std::string& result) {
    def_.nodes.push_back({.name = "dataset",
                          .op = "_Retval",
                          .device = "",
                          .inputs = {result},
                          .attrs = {{"T", DType::kVariant}, {"index", 0}}});
    def_.versions.producer = kGraphVersion;
    return std::move(def_);
  }

 private:
  StatusOr<std::string> AddInput(const Tensor& value, const std::string& op) {
    if (value.dtype() == DType::kVariant) {
      if (const StatusOr<DatasetRef> dataset = DatasetOf(value); dataset.ok()) {
        return Add(**dataset);
      }
    }
    if (value.dtype() == DType::kResource && state_ == StateInGraph::kRefuse) {
      return FailedPrecondition(op, " depends on a resource, which is state outside of its graph");
    }
    NodeDef node{.name = "", .op = "Const", .device = "", .inputs = {}, .attrs = {}};
    node.attrs = {{"dtype", value.dtype()}, {"value", value}};
    if (value.dtype() == DType::kResource && state_ == StateInGraph::kLeaveOut) {
      node.op = "Placeholder";
      node.attrs = {{"dtype", value.dtype()}, {"shape", PartialShape(value.shape())}};
    }
    node.name = absl::StrCat(node.op, "/_", def_.nodes.size());
    def_.nodes.push_back(node);
    return node.name;
  }

  Status AddFunctions(const AttrValue& value, const FunctionLibrary* library) {
    if (const auto* one = value.As<FunctionRef>()) return AddFunction(*one, library);
    const auto* several = value.As<AttrValue::FunctionList>();
    if (several == nullptr) return absl::OkStatus();
    for (const FunctionRef& function : *several) {
      WEFT_RETURN_IF_ERROR(AddFunction(function, library));
    }
    return absl::OkStatus();
  }

  Status AddFunction(const FunctionRef& function, const FunctionLibrary* library) {
    if (library == nullptr) return NotFound("No library has function '", function.name, "'");
    if (!functions_.insert(function.name).second) return absl::OkStatus();
    const FunctionDef* const definition = library->Definition(function.name);
    if (definition == nullptr) return NotFound("Function '", function.name, "' is not defined");
    for (const NodeDef& node : definition->nodes) {
      if (library->Definition(node.op) != nullptr) {
        WEFT_RETURN_IF_ERROR(AddFunction({.name = node.op, .attrs = nullptr}, library));
      }
      for (const auto& [name, value] : node.attrs) {
        WEFT_RETURN_IF_ERROR(AddFunctions(value, library));
      }
    }
    def_.functions.push_back(*definition);
    return absl::OkStatus();
  }

  const StateInGraph state_;
  GraphDef def_;
  absl::flat_hash_map<const Dataset*, std::string> names_;
  absl::flat_hash_set<std::string> functions_;
  int depth_ = 0;
};

}  // namespace

StatusOr<GraphDef> GraphOf(const Dataset& dataset, StateInGraph state) {
  Writer writer(state);
  WEFT_ASSIGN_OR_RETURN(const std::string result, writer.Add(dataset));
  return writer.Take(result);
}

}  // namespace weft::data
