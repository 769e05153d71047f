// SPDX-License-Identifier: Apache-2.0
// Mutations of graphs: nodes, their inputs, and what is fed and fetched.
#include "mutator.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

#include "weft/graph/op_registry.h"
#include "weft/ops/catalogue.h"

namespace weft::mutations {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::RunStepRequest;

// The first output's type, as far as signature and attributes tell; 0 otherwise.
int TypeOf(const NodeDef& node) {
  const OpDefinition* const op = StandardCatalogue().ops().Find(node.op());
  if (op == nullptr || op->schema.outputs.empty()) return 0;
  const ArgSchema& output = op->schema.outputs.front();
  if (output.type_attr.empty()) return static_cast<int>(output.dtype);
  const auto attr = node.attr().find(output.type_attr);
  return attr == node.attr().end() ? 0 : attr->second.type();
}

class Changes {
 public:
  Changes(const Cases& cases, Dice* dice) : cases_(cases), dice_(*dice) {
    const Case& chosen = dice_.Of(dice_.Of(cases));
    trial_.op = chosen.op;
    trial_.steps = chosen.steps;
    graph_ = chosen.graph;
  }

  Trial Make() {
    if (dice_.OneIn(8)) Graft();
    // Shapes and constant values are then known before any step.
    if (dice_.OneIn(3)) FeedsBecomeConstants();
    const uint64_t changes = 1 + dice_.Below(dice_.OneIn(3) ? 6 : 2);
    for (uint64_t i = 0; i < changes; ++i) ChangeOne();
    trial_.fold = dice_.OneIn(2);
    trial_.fuse = dice_.OneIn(2);
    trial_.two_threads = dice_.OneIn(4);
    trial_.graph = Bytes();
    if (dice_.OneIn(30)) dice_.Change(&trial_.graph);
    return std::move(trial_);
  }

 private:
  void ChangeOne() {
    const uint64_t kind = dice_.Below(20);
    if (kind < 8 && ChangeFeed()) return;
    if (graph_.node_size() == 0) return;
    NodeDef& node = dice_.Of(*graph_.mutable_node());
    if (kind < 15) return ChangeAttrOf(&node);
    if (kind < 18) return ChangeInputs(&node);
    if (kind == 18) {
      ChangeFetches();
    } else {
      node.set_op(dice_.Of(dice_.Of(cases_)).op);
    }
  }

  bool ChangeFeed() {
    if (trial_.steps.empty()) return false;
    RunStepRequest& step = dice_.Of(trial_.steps);
    if (step.feed_size() == 0) return false;
    ChangeTensor(dice_.Of(*step.mutable_feed()).mutable_tensor(), &dice_);
    return true;
  }

  void ChangeFetches() {
    if (trial_.steps.empty()) return;
    RunStepRequest& step = dice_.Of(trial_.steps);
    const NodeDef& node = dice_.Of(graph_.node());
    switch (dice_.Below(4)) {
      case 0:
        step.add_fetch(absl::StrCat(node.name(), ":", dice_.Below(3)));
        return;
      case 1:
        step.add_target(node.name());
        return;
      case 2:
        if (step.feed_size() > 0) step.mutable_feed()->RemoveLast();
        return;
      default:
        if (step.feed_size() > 0)
          dice_.Of(*step.mutable_feed()).set_name(absl::StrCat(node.name(), ":0"));
    }
  }

  void ChangeAttrOf(NodeDef* node) {
    if (node->attr().empty()) return;
    // A map has no order that every machine shares.
    std::vector<std::string> names;
    for (const auto& [name, value] : node->attr()) names.push_back(name);
    std::sort(names.begin(), names.end());
    const std::string& name = dice_.Of(names);
    if (dice_.OneIn(40)) {
      node->mutable_attr()->erase(name);
      return;
    }
    // Types of several attributes and nodes must agree, or the graph is refused at once.
    const tensorflow::AttrValue was = node->attr().at(name);
    ChangeAttr(&(*node->mutable_attr())[name], &dice_);
    if (was.value_case() != tensorflow::AttrValue::kType || !dice_.OneIn(2)) return;
    const int now = node->attr().at(name).type();
    for (NodeDef& other : *graph_.mutable_node()) {
      for (auto& [other_name, value] : *other.mutable_attr()) {
        if (value.value_case() == tensorflow::AttrValue::kType && value.type() == was.type())
          value.set_type(static_cast<tensorflow::DataType>(now));
      }
    }
  }

  void ChangeInputs(NodeDef* node) {
    const auto any = [&](int count) {
      return static_cast<int>(dice_.Below(static_cast<uint64_t>(count)));
    };
    if (dice_.OneIn(10)) {
      node->add_input(absl::StrCat(dice_.OneIn(2) ? "^" : "", dice_.Of(graph_.node()).name()));
      return;
    }
    if (node->input_size() == 0) return;
    const int at = any(node->input_size());
    switch (dice_.Below(8)) {
      case 0:
        node->mutable_input()->RemoveLast();
        return;
      case 1:
        node->add_input(node->input(at));
        return;
      case 2:
        node->set_input(at, absl::StrCat(Source(node->input(at)), ":", dice_.Below(3)));
        return;
      case 3:
      case 4:
        node->mutable_input()->SwapElements(at, any(node->input_size()));
        return;
      default:
        node->set_input(at, OtherOfItsType(Source(node->input(at))));
    }
  }

  static std::string Source(absl::string_view input) {
    absl::ConsumePrefix(&input, "^");
    return std::string(input.substr(0, input.rfind(':')));
  }

  std::string OtherOfItsType(const std::string& name) {
    int wanted = 0;
    for (const NodeDef& node : graph_.node()) {
      if (node.name() == name) wanted = TypeOf(node);
    }
    std::vector<std::string> others;
    for (const NodeDef& node : graph_.node()) {
      if (TypeOf(node) == wanted) others.push_back(node.name());
    }
    return others.empty() ? name : dice_.Of(others);
  }

  // Another case beside this one, so that handles and values of one reach the other.
  void Graft() {
    const Case& other = dice_.Of(dice_.Of(cases_));
    if (graph_.node_size() + other.graph.node_size() > 300) return;
    const auto renamed = [](absl::string_view name) {
      return absl::ConsumePrefix(&name, "^") ? absl::StrCat("^o/", name) : absl::StrCat("o/", name);
    };
    const int first = graph_.node_size();
    for (const NodeDef& node : other.graph.node()) {
      NodeDef* const copy = graph_.add_node();
      *copy = node;
      copy->set_name(renamed(node.name()));
      for (std::string& input : *copy->mutable_input()) input = renamed(input);
      for (auto& [name, value] : *copy->mutable_attr()) {
        if (name == "_class") value.mutable_list()->clear_s();
      }
    }
    if (graph_.library().function_size() == 0) *graph_.mutable_library() = other.graph.library();
    for (size_t i = 0; i < other.steps.size(); ++i) {
      if (i >= trial_.steps.size()) trial_.steps.emplace_back();
      RunStepRequest& step = trial_.steps[i];
      for (auto feed : other.steps[i].feed()) {
        feed.set_name(renamed(feed.name()));
        *step.add_feed() = feed;
      }
      for (const auto& fetch : other.steps[i].fetch()) step.add_fetch(renamed(fetch));
      for (const auto& target : other.steps[i].target()) step.add_target(renamed(target));
    }
    for (int i = 0; i < 3 && first < graph_.node_size(); ++i) {
      NodeDef& node = *graph_.mutable_node(
          first + static_cast<int>(dice_.Below(static_cast<uint64_t>(graph_.node_size() - first))));
      if (node.input_size() == 0) continue;
      const int at = static_cast<int>(dice_.Below(static_cast<uint64_t>(node.input_size())));
      node.set_input(at, OtherOfItsType(Source(node.input(at))));
    }
  }

  void FeedsBecomeConstants() {
    if (trial_.steps.empty()) return;
    absl::flat_hash_map<std::string, tensorflow::TensorProto> fed;
    for (const auto& feed : trial_.steps.front().feed()) {
      if (!dice_.OneIn(5)) fed[Source(feed.name())] = feed.tensor();
    }
    for (NodeDef& node : *graph_.mutable_node()) {
      const auto value = fed.find(node.name());
      if (value == fed.end() || node.op() != "Placeholder") continue;
      node.set_op("Const");
      node.mutable_attr()->erase("shape");
      *(*node.mutable_attr())["value"].mutable_tensor() = value->second;
      if (dice_.OneIn(6)) ChangeTensor((*node.mutable_attr())["value"].mutable_tensor(), &dice_);
    }
    for (RunStepRequest& step : trial_.steps) {
      RunStepRequest kept = step;
      kept.clear_feed();
      for (const auto& feed : step.feed()) {
        if (!fed.contains(Source(feed.name()))) *kept.add_feed() = feed;
      }
      step = std::move(kept);
    }
  }

  // Equal for equal graphs: attributes lie in a map.
  std::string Bytes() const {
    std::string bytes;
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    graph_.SerializeToCodedStream(&coded);
    return bytes;
  }

  const Cases& cases_;
  Dice& dice_;
  GraphDef graph_;
  Trial trial_;
};

}  // namespace

Trial MakeTrial(const Cases& cases, uint64_t number) {
  Dice dice(number);
  return Changes(cases, &dice).Make();
}

}  // namespace weft::mutations
