// SPDX-License-Identifier: Apache-2.0
#include "weft/train/saved_model.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "weft/inspect/graph_file.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/object_files.h"

namespace weft::train {
namespace {

constexpr const char* kAfterLoad = "saved_model_main_op";
// Under which names what is run after loading stood and stands, the newest first.
constexpr const char* kInitSignature = "__saved_model_init_op";
constexpr const char* kOlderAfterLoad = "legacy_init_op";

// The machine's own files where none are given.
class Files {
 public:
  explicit Files(FileSystem* given)
      : own_(given != nullptr
                 ? nullptr
                 : std::make_unique<storage::ObjectFileSystem>(std::make_unique<RealFileSystem>())),
        files_(given != nullptr ? *given : *own_) {}
  FileSystem& operator*() { return files_; }

 private:
  const std::unique_ptr<FileSystem> own_;
  FileSystem& files_;
};

Status CheckTensors(const Graph& graph, const std::string& name, const Signature& signature) {
  for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
    for (const auto& [key, tensor] : *tensors) {
      if (!tensor.serialized.empty()) continue;
      const Status found = graph.FindEndpoint(tensor.name).status();
      if (found.ok()) continue;
      return Annotate(found, absl::StrCat("'", key, "' of signature '", name, "'"));
    }
  }
  return absl::OkStatus();
}

// Copies the files that tensors name to `folder`/assets, and tells where they lie there. Files of
// one name are told apart by a number.
Status CopyAssets(FileSystem& files, const std::string& folder, const ExportOptions& options,
                  MetaGraph* meta) {
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;
  std::set<std::string> taken;
  for (const auto& [tensor, path] : options.assets) {
    if (!tensor) return InvalidArgument("The tensor of asset ", path, " is empty");
    const std::string base = path.substr(path.rfind('/') + 1);
    std::string name = base;
    for (int i = 1; !taken.insert(name).second; ++i) name = absl::StrCat(base, "_", i);
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, path, kMostBytes));
    WEFT_RETURN_IF_ERROR(files.MakeDirectories(JoinPath(folder, "assets")));
    WEFT_RETURN_IF_ERROR(WriteFile(files, JoinPath(JoinPath(folder, "assets"), name), bytes));
    meta->assets.push_back({NameOf(tensor), name});
  }
  return absl::OkStatus();
}

bool HasTags(const MetaGraph& meta, const std::vector<std::string>& tags) {
  return std::set<std::string>(meta.tags.begin(), meta.tags.end()) ==
         std::set<std::string>(tags.begin(), tags.end());
}

StatusOr<MetaGraph> ReadMetaGraph(FileSystem& files, const std::string& folder,
                                  const std::vector<std::string>& tags) {
  WEFT_ASSIGN_OR_RETURN(const inspect::GraphFile file, inspect::ReadGraphFile(files, folder));
  std::vector<std::string> there;
  for (const tensorflow::MetaGraphDef& proto : file.graphs) {
    const auto& own = proto.meta_info_def().tags();
    MetaGraph only_tags;
    only_tags.tags.assign(own.begin(), own.end());
    if (HasTags(only_tags, tags)) return ParseMetaGraph(proto.SerializeAsString());
    there.push_back(absl::StrCat("[", absl::StrJoin(own, ", "), "]"));
  }
  return NotFound("No graph of ", file.path, " has the tags [", absl::StrJoin(tags, ", "),
                  "]: there are ", absl::StrJoin(there, " and "));
}

// The node that is run after loading, if there is one.
std::string AfterLoadOf(const MetaGraph& meta) {
  const auto signature = meta.signatures.find(kInitSignature);
  if (signature != meta.signatures.end() && !signature->second.outputs.empty()) {
    return signature->second.outputs.begin()->second.name;
  }
  for (const char* key : {kAfterLoad, kOlderAfterLoad}) {
    const auto names = meta.collections.find(key);
    if (names != meta.collections.end() && !names->second.empty()) return names->second[0];
  }
  return "";
}

}  // namespace

Status ExportSavedModel(Program& program, Saver& saver, session::Session& session,
                        const std::string& folder, const ExportOptions& options) {
  WEFT_RETURN_IF_ERROR(program.status());
  Files own(options.files);
  FileSystem& files = *own;
  if (files.Stat(JoinPath(folder, "saved_model.pb")).ok()) {
    return AlreadyExists("There is a SavedModel in ", folder, " already");
  }
  MetaGraph meta = MetaGraphOf(program, &saver);
  meta.tags = options.tags;
  meta.signatures = options.signatures;
  for (const auto& [name, signature] : meta.signatures) {
    WEFT_RETURN_IF_ERROR(CheckTensors(program.graph(), name, signature));
  }
  if (options.after_load != nullptr) meta.collections[kAfterLoad] = {options.after_load->name()};
  if (options.clear_devices) {
    for (NodeDef& node : meta.graph.nodes) node.device.clear();
    for (FunctionDef& function : meta.graph.functions) {
      for (NodeDef& node : function.nodes) node.device.clear();
    }
  }
  const std::string values = JoinPath(folder, "variables");
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(values));
  WEFT_RETURN_IF_ERROR(saver.Write(session, JoinPath(values, "variables")));
  WEFT_RETURN_IF_ERROR(CopyAssets(files, folder, options, &meta));
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, SerializeSavedModel({std::move(meta)}));
  // Last, so that a folder with this file is whole.
  return WriteFileAtomically(files, JoinPath(folder, "saved_model.pb"), bytes);
}

StatusOr<LoadedModel> LoadSavedModel(Program& program, const std::string& folder,
                                     const LoadOptions& options) {
  Files own(options.files);
  WEFT_ASSIGN_OR_RETURN(MetaGraph meta, ReadMetaGraph(*own, folder, options.tags));
  if (options.clear_devices) {
    for (NodeDef& node : meta.graph.nodes) node.device.clear();
  }
  WEFT_RETURN_IF_ERROR(Annotate(ImportMetaGraph(meta, program), folder));
  LoadedModel model{.folder = folder};
  const std::string values = JoinPath(JoinPath(folder, "variables"), "variables");
  if ((*own).Stat(storage::BundleIndexPath(values)).ok()) model.variables = values;
  model.saver = meta.saver;
  model.after_load = AfterLoadOf(meta);
  for (const AssetFile& asset : meta.assets) {
    // TensorFlow writes names here and no paths, and the graph of a stranger shall not choose.
    if (absl::StrContains(asset.file, '/')) {
      return InvalidArgument(folder, ": the asset '", asset.file, "' is no name of a file");
    }
    model.assets.push_back({asset.tensor, Tensor::Scalar<std::string>(
                                              JoinPath(JoinPath(folder, "assets"), asset.file))});
  }
  meta.signatures.erase(kInitSignature);
  for (const auto& [name, signature] : meta.signatures) {
    WEFT_RETURN_IF_ERROR(Annotate(CheckTensors(program.graph(), name, signature), folder));
  }
  model.signatures = std::move(meta.signatures);
  model.collections = std::move(meta.collections);
  return model;
}

Status LoadedModel::Restore(session::Session& session) const {
  if (!variables.empty() && !saver.restore.empty()) {
    WEFT_RETURN_IF_ERROR(
        Annotate(session.Run({{saver.path, Tensor::Scalar<std::string>(variables)}}, {},
                             {saver.restore.substr(0, saver.restore.find(':'))}, nullptr),
                 absl::StrCat("Cannot restore the values of ", folder)));
  }
  if (after_load.empty()) return absl::OkStatus();
  return Annotate(session.Run(assets, {}, {after_load.substr(0, after_load.find(':'))}, nullptr),
                  absl::StrCat("Cannot run what is to run after loading ", folder));
}

StatusOr<std::map<std::string, Tensor>> LoadedModel::Call(
    session::Session& session, const std::string& signature,
    const std::map<std::string, Tensor>& inputs) const {
  const auto found = signatures.find(signature);
  if (found == signatures.end()) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : signatures) names.push_back(name);
    return InvalidArgument(folder, " has no signature '", signature, "': there are ",
                           absl::StrJoin(names, ", "));
  }
  const Signature& called = found->second;
  std::vector<session::Feed> feeds;
  for (const auto& [name, tensor] : called.inputs) {
    const auto given = inputs.find(name);
    const auto usual = called.defaults.find(name);
    if (given == inputs.end() && usual == called.defaults.end()) {
      return InvalidArgument("Signature '", signature, "' needs the input '", name, "'");
    }
    feeds.push_back({tensor.name, given != inputs.end() ? given->second : usual->second});
  }
  for (const auto& [name, unused] : inputs) {
    if (called.inputs.contains(name)) continue;
    return InvalidArgument("Signature '", signature, "' takes no input '", name, "'");
  }
  std::vector<std::string> fetches;
  for (const auto& [name, tensor] : called.outputs) fetches.push_back(tensor.name);
  std::vector<Tensor> values;
  WEFT_RETURN_IF_ERROR(session.Run(feeds, fetches, {}, &values));
  std::map<std::string, Tensor> results;
  size_t i = 0;
  for (const auto& [name, unused] : called.outputs) results[name] = values[i++];
  return results;
}

}  // namespace weft::train
