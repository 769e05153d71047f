// SPDX-License-Identifier: Apache-2.0
#include "weft/train/saver.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "weft/storage/checkpoint_state.h"

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
};

Node* AddSave(GraphBuilder& builder, Endpoint file, const Part& part) {
  return builder.AddNode(
      "SaveV2", {file, Strings(builder, part.names), Strings(builder, part.slices), part.values});
}

}  // namespace

StatusOr<std::unique_ptr<Saver>> Saver::Create(Program& program, const Options& options) {
  std::unique_ptr<Saver> saver(new Saver(options));
  WEFT_RETURN_IF_ERROR(saver->Build(program));
  return saver;
}

Status Saver::Build(Program& program) {
  GraphBuilder builder(&program.graph());
  WEFT_RETURN_IF_ERROR(program.status());
  const std::vector<Variable> variables = program.SavedVariables();
  if (variables.empty()) return InvalidArgument("There are no variables to save");
  std::map<std::string, Part> parts;
  for (const Variable& variable : variables) {
    Part& part = parts[variable.device];
    part.names.push_back(variable.IsPart() ? variable.whole_name : variable.name);
    part.slices.push_back(variable.SliceText());
    part.values.push_back(variable.value);
    part.dtypes.push_back(variable.dtype);
    part.variables.push_back(&variable);
  }
  builder.PushName("save");
  const Endpoint prefix =
      builder.Op("Placeholder", {}, {{"dtype", DType::kString}, {"shape", Shape()}}, "prefix");
  std::vector<Node*> saved;
  std::vector<Node*> restored;
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
    Node* read = builder.AddNode(
        "RestoreV2", {prefix, Strings(builder, part.names), Strings(builder, part.slices)},
        {{"dtypes", part.dtypes}});
    for (size_t i = 0; i < part.variables.size(); ++i) {
      const Variable& variable = *part.variables[i];
      // The node's name says whose shape it is.
      const Endpoint fits = builder.Op("EnsureShape", {Endpoint{read, static_cast<int>(i)}},
                                       {{"shape", PartialShape(variable.shape)}}, variable.name);
      restored.push_back(builder.AddNode("AssignVariableOp", {variable.handle, fits},
                                         {{"dtype", part.dtypes[i]}}));
    }
  }
  if (num_parts > 1) {
    builder.set_control_inputs(saved);
    saved = {builder.AddNode("MergeV2Checkpoints", {builder.Op("Pack", {files}), prefix})};
  }
  builder.set_device("");
  builder.set_control_inputs(saved);
  const Node* save = builder.AddNode("NoOp", {}, {}, "all");
  builder.set_control_inputs(restored);
  const Node* restore = builder.AddNode("NoOp", {}, {}, "restore_all");
  WEFT_RETURN_IF_ERROR(builder.status());
  prefix_ = prefix.node->name() + ":0";
  save_ = save->name();
  restore_ = restore->name();
  return absl::OkStatus();
}

StatusOr<std::string> Saver::Save(session::Session& session, const std::string& folder,
                                  int64_t step, const std::string& base) {
  WEFT_RETURN_IF_ERROR(files().MakeDirectories(folder));
  const std::string path = absl::StrCat(folder, "/", base, "-", step);
  WEFT_RETURN_IF_ERROR(
      Annotate(session.Run({{prefix_, Tensor::Scalar<std::string>(path)}}, {}, {save_}, nullptr),
               absl::StrCat("Cannot save checkpoint ", path)));
  storage::CheckpointState state;
  if (StatusOr<storage::CheckpointState> old = storage::ReadCheckpointState(files(), folder);
      old.ok()) {
    state.all_model_checkpoint_paths = old->all_model_checkpoint_paths;
  }
  std::vector<std::string>& paths = state.all_model_checkpoint_paths;
  paths.erase(std::remove(paths.begin(), paths.end(), path), paths.end());
  paths.push_back(path);
  state.model_checkpoint_path = path;
  std::vector<std::string> dropped;
  while (options_.max_to_keep > 0 && static_cast<int>(paths.size()) > options_.max_to_keep) {
    dropped.push_back(paths.front());
    paths.erase(paths.begin());
  }
  // The list no longer names what is deleted next, so a crash between the two leaves garbage, not
  // lies.
  WEFT_RETURN_IF_ERROR(storage::WriteCheckpointState(files(), folder, state));
  WEFT_RETURN_IF_ERROR(DeleteOld(folder, &dropped));
  return path;
}

Status Saver::DeleteOld(const std::string& folder, std::vector<std::string>* paths) {
  if (paths->empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files().List(folder));
  for (const std::string& path : *paths) {
    absl::string_view base = path;
    if (!absl::ConsumePrefix(&base, folder + "/")) continue;
    for (const std::string& name : names) {
      const bool belongs = name == absl::StrCat(base, ".index") ||
                           name == absl::StrCat(base, ".meta") ||
                           absl::StartsWith(name, absl::StrCat(base, ".data-"));
      if (belongs) WEFT_RETURN_IF_ERROR(files().Delete(absl::StrCat(folder, "/", name)));
    }
  }
  return absl::OkStatus();
}

Status Saver::Restore(session::Session& session, const std::string& path) {
  return Annotate(
      session.Run({{prefix_, Tensor::Scalar<std::string>(path)}}, {}, {restore_}, nullptr),
      absl::StrCat("Cannot restore checkpoint ", path));
}

StatusOr<std::string> Saver::Latest(const std::string& folder) {
  return storage::LatestCheckpoint(files(), folder);
}

}  // namespace weft::train
