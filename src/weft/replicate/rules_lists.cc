// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, which loops in functional form carry. What is said of a list is said of each of
// its tensors.
#include "weft/replicate/loops.h"
#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

std::optional<Shares> OneList(const std::optional<Share>& share) {
  if (!share) return std::nullopt;
  return Shares{*share};
}

bool SameEverywhere(const OpView& op, int input) { return op.inputs[input].UniformPower() == 0; }

// Sizes of tensors, of which -1 says nothing.
std::optional<PartialShape> ShapeFrom(const Share& sizes) {
  if (!sizes.elements) return std::nullopt;
  PartialShape shape = PartialShape::UnknownOfRank(static_cast<int>(sizes.elements->size()));
  for (int d = 0; d < shape.rank(); ++d) {
    const Element& size = (*sizes.elements)[d];
    if (size.IsKnown() && size.value >= 0) shape.SetDim(d, size.value);
  }
  return shape;
}

// sizes of its tensors, how many.
std::optional<Shares> NewList(const OpView& op) {
  if (!SameEverywhere(op, 1) || !op.inputs[0].is_same()) return std::nullopt;
  Share list = Share::Equal();
  list.is_list = list.zero = true;
  return Shares{list};
}

// list, index, tensor.
std::optional<Shares> SetItem(const OpView& op) {
  if (!SameEverywhere(op, 1)) return std::nullopt;
  return OneList(Join(op.inputs[0], ListOfItems(op.inputs[2], op.shapes[2])));
}

// Nothing can be said of the tensors of an empty list.
std::optional<Share> Item(const OpView& op, int sizes) {
  const Share list = op.inputs[0].OnWorkers();
  if (!list.is_list || (list.is_equal() && list.zero)) return std::nullopt;
  Share item = ItemOfList(list);
  const std::optional<PartialShape> told = ShapeFrom(op.inputs[sizes]);
  if (told && item.shape) {
    const StatusOr<PartialShape> both = told->MergeWith(*item.shape);
    if (both.ok()) item.shape = *both;
  } else if (told) {
    item.shape = told;
  }
  return item;
}

// list, index, sizes.
std::optional<Shares> GetItem(const OpView& op) {
  return SameEverywhere(op, 1) ? OneList(Item(op, 2)) : std::nullopt;
}

std::optional<Shares> PushBack(const OpView& op) {
  return OneList(Join(op.inputs[0], ListOfItems(op.inputs[1], op.shapes[1])));
}

// list, sizes: the rest and the last.
std::optional<Shares> PopBack(const OpView& op) {
  const std::optional<Share> item = Item(op, 1);
  if (!item) return std::nullopt;
  return Shares{op.inputs[0].OnWorkers(), *item};
}

std::optional<Shares> FromTensor(const OpView& op) {
  if (!op.inputs[1].is_same()) return std::nullopt;
  return OneList(UnstackedList(op.inputs[0], op.shapes[0]));
}

// list, [indices], sizes.
template <int kSizes>
std::optional<Shares> Stacked(const OpView& op) {
  if (kSizes == 2 && !SameEverywhere(op, 1)) return std::nullopt;
  const std::optional<Share> item = Item(op, kSizes);
  if (!item) return std::nullopt;
  Share list = *item;
  list.is_list = true;
  return OneList(StackedList(list));
}

std::optional<Shares> Length(const OpView& op) {
  return op.inputs[0].is_list ? std::optional(Shares{Share::Equal()}) : std::nullopt;
}

// Only lists are made of it: it may or may not tell the batch's size.
std::optional<Shares> ItemSizes(const OpView& op) {
  if (!op.inputs[0].is_list) return std::nullopt;
  Share sizes = Share::Equal();
  sizes.is_list = true;
  return Shares{sizes};
}

std::optional<Shares> Resize(const OpView& op) {
  return SameEverywhere(op, 1) && op.inputs[0].is_list
             ? std::optional(Shares{op.inputs[0].OnWorkers()})
             : std::nullopt;
}

// An optional is like a list of what it holds; of several values nothing is said. A sum is put
// together before, for another branch may hold what is no part of one.
std::optional<Shares> OptionalOf(const OpView& op) {
  if (op.inputs.size() != 1 || op.inputs[0].is_part()) return std::nullopt;
  return Shares{ListOfItems(op.inputs[0], op.shapes[0])};
}

std::optional<Shares> ValueOf(const OpView& op) {
  const Share optional = op.inputs[0].OnWorkers();
  if (op.node.num_outputs() != 1 || !optional.is_list || (optional.is_equal() && optional.zero))
    return std::nullopt;
  return Shares{ItemOfList(optional)};
}

std::optional<Shares> NoOptional(const OpView&) {
  Share optional = Share::Equal();
  optional.is_list = optional.zero = true;
  return Shares{optional};
}

}  // namespace

void AddListRules(RuleTable* table) {
  (*table)["TensorListReserve"] = (*table)["EmptyTensorList"] = {NewList};
  (*table)["TensorListSetItem"] = {SetItem};
  (*table)["TensorListGetItem"] = {GetItem};
  (*table)["TensorListPushBack"] = {PushBack};
  (*table)["TensorListPopBack"] = {PopBack};
  (*table)["TensorListFromTensor"] = {FromTensor};
  (*table)["TensorListStack"] = {Stacked<1>};
  (*table)["TensorListGather"] = {Stacked<2>};
  (*table)["TensorListLength"] = {Length};
  (*table)["TensorListElementShape"] = {ItemSizes};
  (*table)["TensorListResize"] = {Resize};
  (*table)["OptionalFromValue"] = {OptionalOf};
  (*table)["OptionalGetValue"] = {ValueOf};
  (*table)["OptionalNone"] = {NoOptional};
}

}  // namespace weft::replicate
