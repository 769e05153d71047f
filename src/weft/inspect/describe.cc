// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/describe.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "proto/tensorflow/event.pb.h"
#include "weft/inspect/describe_kinds.h"
#include "weft/inspect/graph_file.h"
#include "weft/storage/checkpoint_state.h"
#include "weft/storage/tfrecord.h"

namespace weft::inspect {
namespace {

// The prefix of the checkpoint that `path` names; empty if it names none.
std::string CheckpointPrefix(FileSystem& files, const std::string& path) {
  if (IsFile(files, path + ".index")) return path;
  if (absl::EndsWith(path, ".index")) return std::string(absl::StripSuffix(path, ".index"));
  const size_t data = path.rfind(".data-");
  if (data != std::string::npos && IsFile(files, path.substr(0, data) + ".index"))
    return path.substr(0, data);
  const StatusOr<FileStat> stat = files.Stat(path);
  const bool is_state =
      !stat.ok() ? false : !stat->is_directory && absl::EndsWith(path, "/checkpoint");
  if (!stat.ok() || (!stat->is_directory && !is_state)) return "";
  const StatusOr<std::string> latest =
      storage::LatestCheckpoint(files, is_state ? ParentPath(path) : path);
  return latest.ok() ? *latest : "";
}

// Whether the first record is whole, and which it is.
bool FirstRecord(FileSystem& files, const std::string& path, storage::Compression compression,
                 std::string* record) {
  const auto reader = storage::RecordReader::Open(files, path, compression);
  if (!reader.ok()) return false;
  const StatusOr<bool> more = (*reader)->Next(record);
  return more.ok() && *more;
}

// Not every message of other kinds fails to parse as an event: its times and steps tell.
bool IsEvent(const std::string& record) {
  tensorflow::Event event;
  return event.ParseFromString(record) &&
         (absl::StartsWith(event.file_version(), "brain.Event:") || event.wall_time() > 1e8);
}

}  // namespace

StatusOr<Description> DescribeFile(FileSystem& files, const std::string& path,
                                   const DescribeOptions& options) {
  const StatusOr<FileStat> stat = files.Stat(path);
  const bool is_saved_model = stat.ok() && stat->is_directory &&
                              (IsFile(files, JoinPath(path, "saved_model.pb")) ||
                               IsFile(files, JoinPath(path, "saved_model.pbtxt")));
  if (!is_saved_model) {
    const std::string prefix = CheckpointPrefix(files, path);
    if (!prefix.empty()) return DescribeCheckpoint(files, prefix, options);
  }
  if (!stat.ok()) return stat.status();
  if (!stat->is_directory) {
    std::string record;
    for (const auto compression : {storage::Compression::kNone, storage::Compression::kGzip}) {
      if (!FirstRecord(files, path, compression, &record)) continue;
      if (!options.tensor.empty()) return InvalidArgument(path, " holds records, and no tensors");
      return compression == storage::Compression::kNone && IsEvent(record)
                 ? DescribeEvents(files, path)
                 : DescribeRecords(files, path, compression);
    }
  }
  const StatusOr<GraphFile> graph = ReadGraphFile(files, path);
  if (graph.ok()) return DescribeGraph(*graph, options);
  return Annotate(graph.status(), "Neither a checkpoint nor records nor a graph");
}

}  // namespace weft::inspect
