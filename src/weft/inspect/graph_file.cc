// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/graph_file.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "weft/storage/checkpoint_state.h"

namespace weft::inspect {
namespace {

using tensorflow::GraphDef;
using tensorflow::MetaGraphDef;
using tensorflow::SavedModel;

// The graph's file in a folder, or of a prefix; `path` itself if it is a file.
StatusOr<std::string> FindFile(FileSystem& files, const std::string& path) {
  const StatusOr<FileStat> stat = files.Stat(path);
  if (!stat.ok()) {
    if (IsFile(files, path + ".meta")) return path + ".meta";
    if (IsFile(files, path + ".index")) {
      return NotFound("The checkpoint ", path, " has no graph beside it: expected ", path,
                      ".meta, as tf.compat.v1.train.Saver writes. What it holds: weft inspect ",
                      path);
    }
    return stat.status();
  }
  if (!stat->is_directory) return path;
  for (const char* name : {"saved_model.pb", "saved_model.pbtxt"}) {
    if (IsFile(files, JoinPath(path, name))) return JoinPath(path, name);
  }
  const StatusOr<std::string> latest = storage::LatestCheckpoint(files, path);
  if (latest.ok() && IsFile(files, *latest + ".meta")) return *latest + ".meta";
  if (IsFile(files, JoinPath(path, "graph.pbtxt"))) return JoinPath(path, "graph.pbtxt");
  return NotFound("No graph in ", path,
                  ": expected saved_model.pb, saved_model.pbtxt, a checkpoint with its .meta file, "
                  "or graph.pbtxt");
}

bool IsText(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, 4096);
  return !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c)) ||
           absl::ascii_isspace(static_cast<unsigned char>(c)) ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

// Wire formats hardly differ: what was read must look like what it was read as.
bool LooksLikeGraph(const GraphDef& graph) {
  for (int i = 0; i < std::min(graph.node_size(), 100); ++i) {
    const std::string& op = graph.node(i).op();
    const bool is_word = !op.empty() && std::all_of(op.begin(), op.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '>' ||
             c == '-' || c == '.' || c == '/';
    });
    if (!is_word || graph.node(i).name().empty()) return false;
  }
  return graph.node_size() > 0;
}

class ErrorText final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty())
      text = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  void AddWarning(int, int, const std::string&) override {}
  std::string text;
};

template <typename Message>
bool ParseText(const std::string& text, Message* message, std::string* error) {
  google::protobuf::TextFormat::Parser parser;
  ErrorText errors;
  parser.RecordErrorsTo(&errors);
  if (parser.ParseFromString(text, message)) return true;
  // It quotes what it met, which may be all of the file.
  constexpr size_t kMostText = 200;
  *error = errors.text.size() <= kMostText ? errors.text : errors.text.substr(0, kMostText) + "...";
  return false;
}

Status ReadText(const std::string& text, GraphFile* file) {
  std::string error;
  SavedModel saved;
  MetaGraphDef meta;
  if (ParseText(text, &saved, &error) && saved.meta_graphs_size() > 0) {
    file->form = "SavedModel as text";
    file->graphs.assign(saved.meta_graphs().begin(), saved.meta_graphs().end());
    return absl::OkStatus();
  }
  file->form = "MetaGraphDef as text";
  if (ParseText(text, &meta, &error) && meta.has_graph_def()) {
    file->graphs.push_back(std::move(meta));
    return absl::OkStatus();
  }
  file->form = "GraphDef as text";
  GraphDef* graph = file->graphs.emplace_back().mutable_graph_def();
  if (ParseText(text, graph, &error)) return absl::OkStatus();
  return InvalidArgument(file->path, " is not a graph in text form: ", error);
}

Status ReadBinary(const std::string& bytes, GraphFile* file) {
  // What is one of the three is garbage to the other two, which protobuf would report on stderr.
  google::protobuf::LogSilencer silence;
  SavedModel saved;
  if (saved.ParseFromString(bytes) && saved.meta_graphs_size() > 0 &&
      (saved.saved_model_schema_version() == 1 ||
       LooksLikeGraph(saved.meta_graphs(0).graph_def()))) {
    file->form = "SavedModel";
    file->graphs.assign(saved.meta_graphs().begin(), saved.meta_graphs().end());
    return absl::OkStatus();
  }
  file->form = "MetaGraphDef";
  MetaGraphDef meta;
  if (meta.ParseFromString(bytes) && LooksLikeGraph(meta.graph_def())) {
    file->graphs.push_back(std::move(meta));
    return absl::OkStatus();
  }
  file->form = "GraphDef";
  GraphDef* graph = file->graphs.emplace_back().mutable_graph_def();
  const bool parsed = graph->ParseFromString(bytes);
  if (parsed && (LooksLikeGraph(*graph) || (graph->node_size() == 0 && graph->has_versions())))
    return absl::OkStatus();
  return InvalidArgument(file->path,
                         " is not a GraphDef, MetaGraphDef or SavedModel, or it is damaged");
}

}  // namespace

bool IsFile(FileSystem& files, const std::string& path) {
  const StatusOr<FileStat> stat = files.Stat(path);
  return stat.ok() && !stat->is_directory;
}

StatusOr<GraphFile> ReadGraphFile(FileSystem& files, const std::string& path) {
  GraphFile file;
  WEFT_ASSIGN_OR_RETURN(file.path, FindFile(files, path));
  constexpr uint64_t kMostBytes = uint64_t{2} << 30;  // protobuf's own limit
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, file.path, kMostBytes));
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument(file.path, " is empty");
  }
  WEFT_RETURN_IF_ERROR(IsText(bytes) ? ReadText(bytes, &file) : ReadBinary(bytes, &file));
  return file;
}

}  // namespace weft::inspect
