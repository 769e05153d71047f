// SPDX-License-Identifier: Apache-2.0
// The nodes of a Saver.
#include <map>
#include <utility>

#include "weft/train/saver.h"

namespace weft::train {
namespace {

Endpoint Strings(GraphBuilder& builder, const std::vector<std::string>& values) {
  return builder.Constant(
      Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(values.size())}, values));
}

// What one device saves: keys, slices and values in step.
struct Part {
  std::vector<std::string> names;
  std::vector<std::string> slices;
  std::vector<Endpoint> values;
  std::vector<DType> dtypes;
  std::vector<const Variable*> variables;

  void Add(const std::string& name, const std::string& slice, Endpoint value, DType dtype) {
    names.push_back(name);
    slices.push_back(slice);
    values.push_back(value);
    dtypes.push_back(dtype);
  }
};

// By device.
using Parts = std::map<std::string, Part>;

Parts PartsOf(const std::vector<Variable>& variables, const std::vector<ProgramState>& states) {
  Parts parts;
  for (const Variable& variable : variables) {
    Part& part = parts[variable.device];
    part.Add(variable.IsPart() ? variable.whole_name : variable.name, variable.SliceText(),
             variable.value, variable.dtype);
    part.variables.push_back(&variable);
  }
  for (const ProgramState& state : states) {
    if (state.value) parts[state.device].Add(state.name, "", state.value, DType::kVariant);
  }
  return parts;
}

Node* AddSave(GraphBuilder& builder, Endpoint file, const Part& part) {
  return builder.AddNode(
      "SaveV2", {file, Strings(builder, part.names), Strings(builder, part.slices), part.values});
}

// Adds nodes that write all parts to `prefix`, merged where there are several, and gives the last.
std::vector<Node*> AddSaves(GraphBuilder& builder, Endpoint prefix, const Parts& parts) {
  std::vector<Node*> saved;
  std::vector<Endpoint> files;
  const Endpoint temporary = builder.Op(
      "StringJoin", {std::vector<Endpoint>{prefix, builder.Scalar<std::string>("_temp/part")}});
  const auto num_parts = static_cast<int32_t>(parts.size());
  int32_t index = 0;
  for (const auto& [device, part] : parts) {
    builder.set_device(device);
    Endpoint file = prefix;
    if (num_parts > 1) {
      file = builder.Op("ShardedFilename", {temporary, builder.Scalar<int32_t>(index++),
                                            builder.Scalar<int32_t>(num_parts)});
      files.push_back(file);
    }
    saved.push_back(AddSave(builder, file, part));
  }
  if (num_parts > 1) {
    builder.set_control_inputs(saved);
    saved = {builder.AddNode("MergeV2Checkpoints", {builder.Op("Pack", {files}), prefix})};
    builder.set_control_inputs({});
  }
  builder.set_device("");
  return saved;
}

// A node that says that `prefix` is written.
Endpoint AddSaved(GraphBuilder& builder, Endpoint prefix, const std::vector<Node*>& saved,
                  const char* name) {
  builder.set_device("");
  builder.set_control_inputs(saved);
  const Endpoint save = builder.Op("Identity", {prefix}, {}, name);
  builder.set_control_inputs({});
  return save;
}

// The staging areas that hold what was taken, one a device.
struct Areas {
  Parts parts;                 // what lies there
  std::vector<Node*> filled;   // by these nodes
  std::vector<Node*> emptied;  // by these
};

// A staging area shares the bytes of the values that it holds: the variables' next updates write
// elsewhere.
Areas AddAreas(GraphBuilder& builder, Parts parts) {
  Areas areas;
  for (auto& [device, part] : parts) {
    builder.set_device(device);
    // The next chief of the same program finds, and empties, what a chief left that died.
    const AttrMap area = {
        {"shared_name", absl::StrCat("taken ", part.names.size(), " from ", part.names.front())},
        {"dtypes", part.dtypes}};
    areas.emptied.push_back(builder.AddNode("StageClear", {}, area, "forget"));
    builder.set_control_inputs({builder.AddNode("StageClear", {}, area, "make_room")});
    areas.filled.push_back(builder.AddNode("Stage", {part.values}, area, "take"));
    builder.set_control_inputs({});
    Node* held = builder.AddNode("StagePeek", {builder.Scalar<int32_t>(0)}, area, "taken");
    for (size_t i = 0; i < part.values.size(); ++i) {
      part.values[i] = Endpoint{held, static_cast<int>(i)};
    }
  }
  builder.set_device("");
  areas.parts = std::move(parts);
  return areas;
}

// Nodes that give the variables of `part`, which come first in it, what `prefix` has of them.
std::vector<Node*> AddRestore(GraphBuilder& builder, Endpoint prefix, const Part& part) {
  const auto n = static_cast<int>(part.variables.size());
  if (n == 0) return {};
  Node* read = builder.AddNode(
      "RestoreV2",
      {prefix, Strings(builder, {part.names.begin(), part.names.begin() + n}),
       Strings(builder, {part.slices.begin(), part.slices.begin() + n})},
      {{"dtypes", std::vector<DType>(part.dtypes.begin(), part.dtypes.begin() + n)}});
  std::vector<Node*> restored;
  for (int i = 0; i < n; ++i) {
    const Variable& variable = *part.variables[static_cast<size_t>(i)];
    // The node's name says whose shape it is.
    const Endpoint fits = builder.Op("EnsureShape", {Endpoint{read, i}},
                                     {{"shape", PartialShape(variable.shape)}}, variable.name);
    restored.push_back(
        builder.AddNode("AssignVariableOp", {variable.handle, fits}, {{"dtype", variable.dtype}}));
  }
  return restored;
}

// Nodes that give states back what the checkpoint `prefix` has of them. Only what has begun can go
// on elsewhere.
std::vector<Node*> AddRestoreStates(GraphBuilder& builder, Endpoint prefix,
                                    const std::vector<ProgramState>& states) {
  std::vector<Node*> restored;
  for (const ProgramState& state : states) {
    if (!state.value) continue;
    builder.set_device(state.device);
    builder.set_control_inputs({state.initializer});
    const Endpoint value =
        builder.Op("RestoreV2", {prefix, Strings(builder, {state.name}), Strings(builder, {""})},
                   {{"dtypes", std::vector<DType>{DType::kVariant}}});
    restored.push_back(state.restore(builder, value));
  }
  builder.set_control_inputs({});
  return restored;
}

// A node that runs after all of `nodes`.
Node* AddAll(GraphBuilder& builder, const std::vector<Node*>& nodes, const char* name) {
  builder.set_device("");
  builder.set_control_inputs(nodes);
  Node* all = builder.AddNode("NoOp", {}, {}, name);
  builder.set_control_inputs({});
  return all;
}

}  // namespace

Status Saver::Build(Program& program) {
  GraphBuilder builder(&program.graph());
  WEFT_RETURN_IF_ERROR(program.status());
  const std::vector<Variable> variables = program.SavedVariables();
  if (variables.empty()) return InvalidArgument("There are no variables to save");
  const Parts parts = PartsOf(variables, program.states());
  builder.PushName("save");
  const Endpoint prefix =
      builder.Op("Placeholder", {}, {{"dtype", DType::kString}, {"shape", Shape()}}, "prefix");
  const Endpoint save = AddSaved(builder, prefix, AddSaves(builder, prefix, parts), "saved");
  std::vector<Node*> restored;
  for (const auto& [device, part] : parts) {
    builder.set_device(device);
    for (Node* node : AddRestore(builder, prefix, part)) restored.push_back(node);
  }
  const Node* restore = AddAll(builder, restored, "restore_all");
  const std::vector<Node*> states = AddRestoreStates(builder, prefix, program.states());
  if (!states.empty()) {
    const Node* restore_states = AddAll(builder, states, "restore_states");
    const Node* init_states = program.InitializeStates();
    WEFT_RETURN_IF_ERROR(builder.status());
    WEFT_RETURN_IF_ERROR(program.status());
    restore_states_ = restore_states->name();
    init_states_ = init_states->name();
  }
  if (options_.can_take) {
    const Areas areas = AddAreas(builder, parts);
    const Endpoint taken =
        AddSaved(builder, prefix, AddSaves(builder, prefix, areas.parts), "saved_taken");
    const Node* take = AddAll(builder, areas.filled, "take_all");
    const Node* forget = AddAll(builder, areas.emptied, "forget_all");
    WEFT_RETURN_IF_ERROR(builder.status());
    save_taken_ = taken.node->name() + ":0";
    take_ = take->name();
    forget_taken_ = forget->name();
  }
  WEFT_RETURN_IF_ERROR(builder.status());
  names_ = {.path = prefix.node->name() + ":0",
            .save = save.node->name() + ":0",
            .restore = restore->name()};
  return absl::OkStatus();
}

}  // namespace weft::train
