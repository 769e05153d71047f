// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/checkpoint_state.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/strip.h"

#include "proto/tensorflow/saver.pb.h"
#include "weft/storage/bundle_format.h"

namespace weft::storage {
namespace {

constexpr uint64_t kMostBytes = 16 << 20;

// Keeps the first complaint.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string Relative(const std::string& folder, const std::string& path) {
  absl::string_view rest = path;
  if (!absl::ConsumePrefix(&rest, folder)) return path;
  if (!folder.empty() && folder.back() != '/' && !absl::ConsumePrefix(&rest, "/")) return path;
  while (absl::ConsumePrefix(&rest, "/")) {
  }
  return rest.empty() ? path : std::string(rest);
}

}  // namespace

Status WriteCheckpointState(FileSystem& files, const std::string& folder,
                            const CheckpointState& state, const std::string& file_name) {
  if (!state.all_model_checkpoint_timestamps.empty() &&
      state.all_model_checkpoint_timestamps.size() != state.all_model_checkpoint_paths.size()) {
    return InvalidArgument("Checkpoint state of ", folder, " needs a timestamp for each path: ",
                           state.all_model_checkpoint_timestamps.size(), " for ",
                           state.all_model_checkpoint_paths.size());
  }
  tensorflow::CheckpointState proto;
  proto.set_model_checkpoint_path(Relative(folder, state.model_checkpoint_path));
  for (const std::string& path : state.all_model_checkpoint_paths) {
    proto.add_all_model_checkpoint_paths(Relative(folder, path));
  }
  for (double timestamp : state.all_model_checkpoint_timestamps) {
    proto.add_all_model_checkpoint_timestamps(timestamp);
  }
  if (state.last_preserved_timestamp != 0) {
    proto.set_last_preserved_timestamp(state.last_preserved_timestamp);
  }
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(proto, &text)) {
    return Internal("Checkpoint state cannot be printed: ", folder);
  }
  return WriteFileAtomically(files, JoinPath(folder, file_name), text);
}

StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& folder,
                                              const std::string& file_name) {
  const std::string path = JoinPath(folder, file_name);
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);
  tensorflow::CheckpointState proto;
  if (!parser.ParseFromString(text, &proto)) {
    return DataLoss("Malformed checkpoint state (", error.text(), ") in file ", path);
  }
  CheckpointState state;
  // An empty path names no checkpoint; joined it would name the folder.
  if (!proto.model_checkpoint_path().empty()) {
    state.model_checkpoint_path = JoinPath(folder, proto.model_checkpoint_path());
  }
  for (const std::string& each : proto.all_model_checkpoint_paths()) {
    state.all_model_checkpoint_paths.push_back(JoinPath(folder, each));
  }
  const auto& timestamps = proto.all_model_checkpoint_timestamps();
  state.all_model_checkpoint_timestamps.assign(timestamps.begin(), timestamps.end());
  state.last_preserved_timestamp = proto.last_preserved_timestamp();
  return state;
}

StatusOr<std::string> LatestCheckpoint(FileSystem& files, const std::string& folder,
                                       const std::string& file_name) {
  WEFT_ASSIGN_OR_RETURN(const CheckpointState state, ReadCheckpointState(files, folder, file_name));
  if (state.model_checkpoint_path.empty()) {
    return NotFound("Checkpoint state names no checkpoint: ", JoinPath(folder, file_name));
  }
  WEFT_RETURN_IF_ERROR(files.Stat(BundleIndexPath(state.model_checkpoint_path)).status());
  return state.model_checkpoint_path;
}

}  // namespace weft::storage
