// SPDX-License-Identifier: Apache-2.0
// SavedModels: a folder with graphs, signatures, values and files, as TensorFlow writes and serves.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "weft/session/session.h"
#include "weft/train/meta_graph.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"

namespace weft::train {

struct ExportOptions {
  std::map<std::string, Signature> signatures;  // MakeSignature
  std::vector<std::string> tags = {"serve"};
  Node* after_load = nullptr;  // run once the values are there: what fills tables
  // String scalars of the graph, each with the file that it names: that is copied along, and
  // whoever loads the model feeds the copy's path.
  std::vector<std::pair<Endpoint, std::string>> assets = {};
  bool clear_devices = true;    // the model runs wherever it is loaded
  FileSystem* files = nullptr;  // null: the machine's own
};

// Writes `folder`/saved_model.pb, variables/ and assets/: the graph of `program` with the values
// that `session` has. AlreadyExists if there is a model in the folder.
Status ExportSavedModel(Program& program, Saver& saver, session::Session& session,
                        const std::string& folder, const ExportOptions& options);

struct LoadOptions {
  std::vector<std::string> tags = {"serve"};
  bool clear_devices = false;
  FileSystem* files = nullptr;  // null: the machine's own
};

// A model whose graph is part of a program: once a session has that, Restore gives it its values.
//   WEFT_ASSIGN_OR_RETURN(LoadedModel model, LoadSavedModel(program, folder));
//   session->Extend(ExportGraph(program.graph()));  // or build on it before: a loss, an optimizer
//   model.Restore(*session);
//   model.Call(*session, "serving_default", {{"x", x}});
struct LoadedModel {
  std::string folder;
  std::map<std::string, Signature> signatures;
  std::map<std::string, std::vector<std::string>> collections;

  // Gives the variables the model's values and runs what is to run after that.
  Status Restore(session::Session& session) const;
  // Results by name. InvalidArgument names a signature or an input that there is not, or an input
  // that is missing.
  StatusOr<std::map<std::string, Tensor>> Call(session::Session& session,
                                               const std::string& signature,
                                               const std::map<std::string, Tensor>& inputs) const;

  std::string variables;  // the prefix of the values; empty: it has none
  SaverNames saver;
  std::vector<session::Feed> assets;
  std::string after_load;  // empty: nothing is run
};

// Adds the graph with exactly these tags to `program` (ImportMetaGraph). NotFound names the folder,
// or the tags that there are.
StatusOr<LoadedModel> LoadSavedModel(Program& program, const std::string& folder,
                                     const LoadOptions& options = {});

}  // namespace weft::train
