// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/loops.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft::replicate {
namespace {

// Handles are passed through no more nodes than this.
constexpr int kMostPassed = 10000;

PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return {};
  PartialShape common = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) common.SetDim(d, -1);
  }
  return common;
}

bool PassesHandle(const Node& node) {
  return node.num_inputs() > 0 &&
         (node.LowersTo(InstructionKind::kEnter) || node.LowersTo(InstructionKind::kExit) ||
          node.LowersTo(InstructionKind::kSwitch) || node.LowersTo(InstructionKind::kMerge) ||
          node.LowersTo(InstructionKind::kNextIteration) || node.op() == "Identity");
}

// What a handle comes from, into loops and out of them; null if that is not found.
const Node* Origin(Endpoint handle) {
  for (int i = 0; i < kMostPassed && handle.node != nullptr; ++i) {
    if (!PassesHandle(*handle.node)) return handle.node;
    handle = handle.node->input(0);
  }
  return nullptr;
}

}  // namespace

StatusOr<Loops> Loops::Make(const std::vector<Node*>& order, int max_id) {
  Loops loops;
  WEFT_ASSIGN_OR_RETURN(loops.layout_, compile::LayOutFrames(order, max_id));
  return loops;
}

int Loops::LoopOf(const Node& node) const {
  int frame = node.LowersTo(InstructionKind::kEnter) ? layout_.leads_to[node.id()]
                                                     : layout_.runs_in[node.id()];
  while (frame != 0 && layout_.frames[frame].parent != 0) frame = layout_.frames[frame].parent;
  return frame;
}

std::vector<Node*> Loops::WithLoopsWhole(const std::vector<Node*>& order) const {
  const auto leaves = [&](const Node& node) {
    return node.LowersTo(InstructionKind::kExit) && layout_.leads_to[node.id()] == 0;
  };
  std::map<int, int> missing;  // by loop: nodes but for those that leave it
  for (const Node* node : order) {
    if (const int loop = LoopOf(*node); loop != 0 && !leaves(*node)) ++missing[loop];
  }
  std::vector<Node*> whole;
  std::vector<bool> is_there(layout_.runs_in.size(), false);
  const auto is_ready = [&](const Node& node) {
    if (leaves(node) && missing[LoopOf(node)] > 0) return false;
    for (const Endpoint& input : node.inputs()) {
      if (!input.node->LowersTo(InstructionKind::kNextIteration) && !is_there[input.node->id()])
        return false;
    }
    return std::all_of(
        node.control_inputs().begin(), node.control_inputs().end(), [&](const Node* control) {
          return control->LowersTo(InstructionKind::kNextIteration) || is_there[control->id()];
        });
  };
  // Each way takes all that is ready; loops that follow on each other need one more each.
  std::vector<Node*> waiting = order;
  while (!waiting.empty()) {
    std::vector<Node*> later;
    for (Node* node : waiting) {
      if (!is_ready(*node)) {
        later.push_back(node);
        continue;
      }
      whole.push_back(node);
      is_there[node->id()] = true;
      if (const int loop = LoopOf(*node); loop != 0 && !leaves(*node)) --missing[loop];
    }
    if (later.size() == waiting.size()) return order;
    waiting = std::move(later);
  }
  return whole;
}

void Loops::Split(int loop) { changed_ = split_.insert(loop).second || changed_; }

bool Loops::IsVariable(const Node& node) {
  return node.LowersTo(InstructionKind::kMerge) &&
         std::any_of(node.inputs().begin(), node.inputs().end(), [](const Endpoint& input) {
           return input.node != nullptr && input.node->LowersTo(InstructionKind::kNextIteration);
         });
}

bool Loops::Take(const Node& merge, const Variable& value) {
  const auto [known, is_new] =
      variables_.try_emplace(&merge, Variable{value.share.OnWorkers(), value.shape});
  if (is_new) return true;
  const std::optional<Share> joined = Join(known->second.share, value.share);
  if (!joined) return false;
  const PartialShape shape = CommonShape(known->second.shape, value.shape);
  if (*joined == known->second.share && shape == known->second.shape) return true;
  known->second = {*joined, shape};
  changed_ = true;
  return true;
}

std::optional<Loops::Variable> Loops::Begin(const Node& merge, const Variable& first) {
  if (!Take(merge, first)) return std::nullopt;
  return variables_.at(&merge);
}

bool Loops::ComeRound(const Node& next, const Variable& value) {
  return std::all_of(next.consumers().begin(), next.consumers().end(), [&](const Consumer& reader) {
    return !IsVariable(*reader.node) || Take(*reader.node, value);
  });
}

std::string Loops::WhatItIs(const Node& next) const {
  for (const Consumer& reader : next.consumers()) {
    const auto found = variables_.find(reader.node);
    if (found != variables_.end()) return found->second.share.ToString();
  }
  return "unknown";
}

bool Stores::IsStore(const Node& node) {
  return node.op() == "TensorArrayV3" || node.op() == "StackV2";
}

bool Stores::IsAccess(const Node& node) {
  return (absl::StartsWith(node.op(), "TensorArray") && node.op() != "TensorArrayV3") ||
         node.op() == "StackPushV2" || node.op() == "StackPopV2";
}

std::optional<Stores::Key> Stores::KeyOf(Endpoint handle) {
  std::string whose;
  for (const Node* node = Origin(handle); node != nullptr; node = Origin(node->input(0))) {
    if (IsStore(*node)) return Key{node, whose};
    if (node->op() != "TensorArrayGradV3") break;
    absl::StrAppend(&whose, "/", FindAttrOr<std::string>(node->attrs(), "source", ""));
  }
  return std::nullopt;
}

bool Stores::Put(const Key& key, const Share& item) {
  const auto [known, is_new] = items_.try_emplace(key, item);
  if (is_new) {
    changed_ = true;
    return true;
  }
  const std::optional<Share> joined = Join(known->second, item);
  if (!joined) return false;
  if (*joined == known->second) return true;
  known->second = *joined;
  changed_ = true;
  return true;
}

std::optional<Share> Stores::ItemOf(const Key& key) const {
  const auto found = items_.find(key);
  if (found == items_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::vector<Share>> Stores::Apply(const Node& node, const std::vector<Share>& inputs,
                                                const std::vector<PartialShape>& shapes) {
  const std::optional<Key> key = KeyOf(node.input(0));
  if (!key) return std::nullopt;
  if (split_.insert(key->first).second) {
    changed_ = is_stale_ = true;
    return std::nullopt;
  }
  const std::string& op = node.op();
  const Share handle = {.kind = Share::Kind::kEqual, .is_list = true};
  const auto is_same = [&](size_t i) { return inputs[i].UniformPower() == 0; };
  const auto put = [&](const std::optional<Share>& item) {
    return item && Put(*key, *item) ? std::optional(std::vector<Share>{handle}) : std::nullopt;
  };
  if (op == "TensorArrayGradV3") return std::vector<Share>{handle, handle};
  if (op == "TensorArraySizeV3") return std::vector<Share>{Share::Equal()};
  if (op == "TensorArrayWriteV3" && is_same(1)) return put(ListOfItems(inputs[2], shapes[2]));
  if (op == "TensorArrayScatterV3" && is_same(1)) return put(UnstackedList(inputs[2], shapes[2]));
  if (op == "StackPushV2") {
    if (!put(ListOfItems(inputs[1], shapes[1]))) return std::nullopt;
    return std::vector<Share>{inputs[1].OnWorkers()};
  }
  const std::optional<Share> item = ItemOf(*key);
  if (!item) return std::nullopt;
  if (op == "StackPopV2" || (op == "TensorArrayReadV3" && is_same(1)))
    return std::vector<Share>{ItemOfList(*item)};
  if (op != "TensorArrayGatherV3" || !is_same(1)) return std::nullopt;
  const std::optional<Share> stacked = StackedList(*item);
  if (!stacked) return std::nullopt;
  return std::vector<Share>{*stacked};
}

const Node* VariableOf(Endpoint handle) {
  const Node* const origin = Origin(handle);
  return origin != nullptr && origin->op() == "VarHandleOp" ? origin : nullptr;
}

Share ItemOfList(const Share& list) {
  Share item = list.OnWorkers();
  item.is_list = false;
  return item;
}

Share ListOfItems(const Share& item, const PartialShape& shape) {
  Share list = item.OnWorkers();
  list.is_list = true;
  list.shape = shape;
  // One that holds zeros is not empty.
  if (list.is_equal()) list.zero = false;
  return list;
}

std::optional<Share> StackedList(const Share& list) {
  Share out = ItemOfList(list);
  if (out.is_slice()) ++out.dim;
  if (out.elements) {
    const std::optional<int> power = out.UniformPower();
    if (!power) return std::nullopt;
    out.scale = *power;
    out.elements.reset();
  }
  if (out.shape && out.shape->known_rank()) {
    PartialShape stacked = PartialShape::UnknownOfRank(1);
    for (const int64_t size : out.shape->dims()) stacked.AddDim(size);
    out.shape = stacked;
  } else {
    out.shape.reset();
  }
  return out;
}

std::optional<Share> UnstackedList(const Share& tensor, const PartialShape& shape) {
  if (tensor.is_slice() && tensor.dim == 0) return std::nullopt;
  PartialShape item;
  if (shape.rank() > 0) {
    item = PartialShape::UnknownOfRank(shape.rank() - 1);
    for (int d = 1; d < shape.rank(); ++d) item.SetDim(d - 1, shape.dim(d));
  }
  Share list = ListOfItems(tensor, item);
  if (list.is_slice()) --list.dim;
  if (list.elements) {
    const std::optional<int> power = tensor.UniformPower();
    if (!power) return std::nullopt;
    list.scale = *power;
    list.elements.reset();
  }
  return list;
}

}  // namespace weft::replicate
