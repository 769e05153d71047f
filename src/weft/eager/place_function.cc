// SPDX-License-Identifier: Apache-2.0
#include "weft/eager/place_function.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "weft/graph/function.h"

namespace weft::eager {
namespace {

// Of branches the first input says which, and the others are what they take.
size_t FirstArgument(const std::string& op) {
  return op == "If" || op == "StatelessIf" || op == "Case" || op == "StatelessCase" ? 1 : 0;
}

// Names the copy after what it is a copy of and where the arguments lie.
std::string NameOfCopy(const std::string& name, const std::vector<std::string>& devices,
                       const std::string& here) {
  const size_t hash =
      std::hash<std::string>()(absl::StrCat(absl::StrJoin(devices, ","), "@", here));
  return absl::StrCat(name, "_at_", absl::Hex(hash));
}

// Replaces the functions that `node` names by copies placed for its inputs.
Status PlaceCalled(const std::vector<std::string>& inputs, const std::string& here, NodeDef* node,
                   Graph* library, std::vector<FunctionDef>* added) {
  const size_t first = std::min(FirstArgument(node->op), inputs.size());
  const std::vector<std::string> devices(inputs.begin() + static_cast<int64_t>(first),
                                         inputs.end());
  const auto place = [&](const FunctionRef& function) -> StatusOr<FunctionRef> {
    WEFT_ASSIGN_OR_RETURN(std::string copy,
                          PlaceFunction(function.name, devices, here, library, added));
    return FunctionRef{.name = std::move(copy), .attrs = function.attrs};
  };
  if (library->FindFunction(node->op) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(node->op, PlaceFunction(node->op, devices, here, library, added));
    return absl::OkStatus();
  }
  for (auto& [name, value] : node->attrs) {
    if (const auto* one = value.As<FunctionRef>()) {
      WEFT_ASSIGN_OR_RETURN(FunctionRef placed, place(*one));
      value = AttrValue(std::move(placed));
    } else if (const auto* list = value.As<AttrValue::FunctionList>();
               list != nullptr && !list->empty()) {
      AttrValue::FunctionList placed;
      for (const FunctionRef& function : *list) {
        WEFT_ASSIGN_OR_RETURN(FunctionRef copy, place(function));
        placed.push_back(std::move(copy));
      }
      value = AttrValue(std::move(placed));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> PlaceFunction(const std::string& name,
                                    const std::vector<std::string>& devices,
                                    const std::string& here, Graph* library,
                                    std::vector<FunctionDef>* added) {
  const FunctionDef* const original = library->FindFunction(name);
  if (original == nullptr) return NotFound("Function '", name, "' is not known");
  const std::string copy_name = NameOfCopy(name, devices, here);
  if (library->FindFunction(copy_name) != nullptr) return copy_name;
  FunctionDef copy = *original;
  copy.signature.name = copy_name;
  // By the text by which nodes read them.
  std::map<std::string, std::string> places;
  for (size_t i = 0; i < copy.signature.inputs.size() && i < devices.size(); ++i) {
    if (!devices[i].empty()) places[copy.signature.inputs[i].name] = devices[i];
  }
  // Bodies may stand in any order: a place goes over one Identity a round.
  for (bool changes = true; changes;) {
    changes = false;
    for (const NodeDef& node : copy.nodes) {
      if (node.op != "Identity" || node.inputs.empty()) continue;
      const auto place = places.find(node.inputs[0]);
      if (place == places.end()) continue;
      changes |= places.emplace(node.name + ":output:0", place->second).second;
    }
  }
  for (NodeDef& node : copy.nodes) {
    std::vector<std::string> inputs;
    std::string device;
    for (const std::string& input : node.inputs) {
      if (absl::StartsWith(input, "^")) continue;
      const auto place = places.find(input);
      inputs.push_back(place == places.end() ? "" : place->second);
      if (device.empty()) device = inputs.back();
    }
    if (device.empty()) {
      // A call that is given a handle goes where that is, but the rest of its body does not.
      if (node.device.empty()) node.device = here;
      continue;
    }
    const StatusOr<std::vector<FunctionRef>> called = FunctionsOf(*library, node.op, node.attrs);
    if (called.ok() && !called->empty()) {
      WEFT_RETURN_IF_ERROR(PlaceCalled(inputs, here, &node, library, added));
    } else {
      node.device = device;
    }
  }
  WEFT_RETURN_IF_ERROR(library->AddFunction(copy));
  added->push_back(std::move(copy));
  return copy_name;
}

}  // namespace weft::eager
