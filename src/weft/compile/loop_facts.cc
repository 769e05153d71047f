// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/loop_facts.h"

#include <algorithm>
#include <cstring>

#include "weft/compile/known_values.h"
#include "weft/compile/passes.h"
#include "weft/graph/shape_inference.h"
#include "weft/graph/stores.h"

namespace weft::compile {
namespace {

// Values are for shapes and axes.
constexpr int64_t kMostElements = 64;
// More rounds than shapes can get vaguer in nested loops.
constexpr int kMostRounds = 256;

bool IsSmall(const Tensor& value) {
  return (value.dtype() == DType::kInt32 || value.dtype() == DType::kInt64) &&
         value.num_elements() <= kMostElements;
}

bool Equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.size_bytes()) == 0;
}

PartialShape JoinShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return {};
  PartialShape joined = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) joined.SetDim(d, -1);
  }
  return joined;
}

// Whether its outputs are its first input, where they are alive.
bool GivesItsInput(const Node& node) {
  switch (node.traits().lowers_to) {
    case InstructionKind::kEnter:
    case InstructionKind::kExit:
    case InstructionKind::kNextIteration:
    case InstructionKind::kLoopCondition:
    case InstructionKind::kSwitch:
      return true;
    default:
      return node.traits().passes_on == PassesOn::kItself;
  }
}

}  // namespace

LoopFacts::LoopFacts(const PlanOptions& options, const std::vector<Node*>& order, int max_id)
    : options_(options), facts_(max_id) {
  FindStores(order);
  std::vector<bool> is_due(max_id, true);
  bool is_changing = true;
  for (int round = 0; is_changing && round < kMostRounds; ++round) {
    is_changing = false;
    for (const Node* node : order) {
      if (!is_due[node->id()]) continue;
      is_due[node->id()] = false;
      if (!Update(*node)) continue;
      is_changing = true;
      for (const Consumer& consumer : node->consumers()) {
        is_due[consumer.node->id()] = true;
        const Store* store = StoreOf(*consumer.node);
        if (store == nullptr) continue;
        for (const Node* reader : store->readers) is_due[reader->id()] = true;
      }
    }
  }
  // What did not come to rest is not known.
  if (is_changing) facts_.assign(max_id, {});
}

PartialShape LoopFacts::ShapeOf(const Endpoint& output) const {
  const Fact* fact = Find(output);
  return fact == nullptr ? PartialShape() : fact->shape;
}

const Tensor* LoopFacts::ValueOf(const Endpoint& output) const {
  const Fact* fact = Find(output);
  return fact == nullptr || !fact->value ? nullptr : &*fact->value;
}

const Store* LoopFacts::StoreOf(const Node& node) const {
  const auto found = store_of_.find(&node);
  return found == store_of_.end() || !stores_[found->second].is_known ? nullptr
                                                                      : &stores_[found->second];
}

void LoopFacts::FindStores(const std::vector<Node*>& order) {
  for (Node* node : order) {
    const Stores stores = StoresOf(*node);
    if (stores != Stores::kMakes) continue;
    Store store{.maker = node};
    FollowHandle(node, &store);
    for (const std::vector<Node*>* users : {&store.writers, &store.readers}) {
      for (const Node* user : *users) store_of_[user] = static_cast<int>(stores_.size());
    }
    stores_.push_back(std::move(store));
  }
}

void LoopFacts::FollowHandle(Node* maker, Store* store) {
  std::vector<const Node*> at = {maker};
  while (!at.empty()) {
    const Node& node = *at.back();
    at.pop_back();
    for (const Consumer& consumer : node.consumers()) {
      if (consumer.input == kControlPort || (&node == maker && consumer.port != 0)) continue;
      switch (StoresOf(*consumer.node)) {
        case Stores::kPushes:
        case Stores::kWrites:
        case Stores::kWritesRows:
          store->writers.push_back(consumer.node);
          break;
        case Stores::kPops:
        case Stores::kReads:
          store->readers.push_back(consumer.node);
          break;
        case Stores::kLeaves:
          break;
        default:
          if (consumer.node->LowersTo(InstructionKind::kEnter) ||
              (consumer.node->traits().passes_on == PassesOn::kItself &&
               !HasReferences(*consumer.node))) {
            at.push_back(consumer.node);
          } else {
            store->is_known = false;
          }
      }
    }
  }
}

const LoopFacts::Fact* LoopFacts::Find(const Endpoint& output) const {
  if (output.node == nullptr || output.node->id() >= static_cast<int>(facts_.size())) {
    return nullptr;
  }
  const std::vector<Fact>& facts = facts_[output.node->id()];
  if (output.port >= static_cast<int>(facts.size())) return nullptr;
  return facts[output.port].is_reached ? &facts[output.port] : nullptr;
}

void LoopFacts::Join(const Fact& other, Fact* fact) {
  if (!fact->is_reached) {
    *fact = other;
    return;
  }
  if (!(fact->shape == other.shape)) fact->shape = JoinShapes(fact->shape, other.shape);
  if (!(fact->variable == other.variable)) fact->variable = PartialShape();
  if (fact->value && !(other.value && Equal(*fact->value, *other.value))) fact->value.reset();
}

bool LoopFacts::Update(const Node& node) {
  const std::vector<Fact> news = Evaluate(node);
  std::vector<Fact>& facts = facts_[node.id()];
  if (facts.size() < news.size()) facts.resize(news.size());
  bool is_changed = false;
  for (size_t i = 0; i < news.size(); ++i) {
    const Fact before = facts[i];
    Join(news[i], &facts[i]);
    is_changed = is_changed || !before.is_reached || !(before.shape == facts[i].shape) ||
                 before.value.has_value() != facts[i].value.has_value() ||
                 !(before.variable == facts[i].variable);
  }
  return is_changed;
}

std::vector<LoopFacts::Fact> LoopFacts::Evaluate(const Node& node) const {
  if (node.num_outputs() == 0) return {};
  if (HasReferences(node)) return std::vector<Fact>(node.num_outputs(), Fact{.is_reached = true});
  if (node.LowersTo(InstructionKind::kMerge)) {
    std::vector<Fact> facts(1);
    for (const Endpoint& input : node.inputs()) {
      if (const Fact* fact = Find(input)) Join(*fact, &facts[0]);
    }
    if (!facts[0].is_reached) return {};
    facts.push_back({.is_reached = true, .shape = Shape()});
    return facts;
  }
  if (StoresOf(node) == Stores::kPops || StoresOf(node) == Stores::kReads) {
    return ReadOf(node);
  }
  for (const Endpoint& input : node.inputs()) {
    if (Find(input) == nullptr) return {};
  }
  if (StoresOf(node) == Stores::kPushes) return {*Find(node.input(1))};
  if (node.num_inputs() > 0 && GivesItsInput(node)) {
    return std::vector<Fact>(node.num_outputs(), *Find(node.input(0)));
  }
  return Infer(node);
}

std::vector<LoopFacts::Fact> LoopFacts::ReadOf(const Node& node) const {
  Fact fact;
  const Store* store = StoreOf(node);
  if (store == nullptr || store->writers.empty()) return {Fact{.is_reached = true}};
  // What was never written is zeros of this shape.
  const auto unwritten =
      FindAttrOr<PartialShape>(store->maker->attrs(), "element_shape", PartialShape());
  if (unwritten.IsFullyDefined()) Join({.is_reached = true, .shape = unwritten}, &fact);
  for (const Node* writer : store->writers) {
    const Stores how = StoresOf(*writer);
    const int value = how == Stores::kPushes ? 1 : 2;
    const Fact* written = Find(writer->input(value));
    if (written == nullptr) continue;
    if (writer->input_type(value).dtype != node.output_type(0).dtype) {
      return {Fact{.is_reached = true}};
    }
    Fact element = *written;
    if (how == Stores::kWritesRows) {
      element = Fact{.is_reached = true};
      if (written->shape.known_rank() && written->shape.rank() > 0) {
        const StatusOr<PartialShape> row = PartialShape::Make(written->shape.dims().subspan(1));
        if (row.ok()) element.shape = *row;
      }
    }
    Join(element, &fact);
  }
  if (!fact.is_reached) return {};
  return {fact};
}

std::vector<LoopFacts::Fact> LoopFacts::Infer(const Node& node) const {
  std::vector<PartialShape> shapes, variables;
  std::vector<const Tensor*> values;
  for (const Endpoint& input : node.inputs()) {
    const Fact& fact = *Find(input);
    shapes.push_back(fact.shape);
    variables.push_back(fact.variable);
    values.push_back(fact.value ? &*fact.value : nullptr);
  }
  std::vector<Fact> facts(node.num_outputs(), Fact{.is_reached = true});
  const StatusOr<std::vector<PartialShape>> inferred = InferShapes(node, shapes, values, variables);
  if (!inferred.ok()) return facts;
  for (size_t i = 0; i < facts.size(); ++i) facts[i].shape = (*inferred)[i];
  if (node.traits().source == ValueSource::kVariable) {
    facts[0].variable = FindAttrOr<PartialShape>(node.attrs(), "shape", PartialShape());
  }
  std::optional<std::vector<Tensor>> computed = ValuesTold(node, shapes);
  if (node.traits().source == ValueSource::kConstant) {
    StatusOr<Tensor> value = node.Attr<Tensor>("value");
    if (!value.ok() || value->dtype() != node.output_type(0).dtype) return facts;
    facts[0].shape = PartialShape(value->shape());
    computed = {*std::move(value)};
  } else if (!computed && !node.schema().is_stateful && node.num_inputs() > 0 &&
             node.LowersTo(InstructionKind::kKernel) &&
             std::none_of(values.begin(), values.end(),
                          [](const Tensor* value) { return value == nullptr; })) {
    computed = ValuesComputed(options_, node, values);
  }
  for (size_t i = 0; computed && i < computed->size(); ++i) {
    if (IsSmall((*computed)[i])) facts[i].value = std::move((*computed)[i]);
  }
  return facts;
}

}  // namespace weft::compile
