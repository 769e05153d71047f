// SPDX-License-Identifier: Apache-2.0
// For formats_test.py: reads a file with this project's code and writes what it read, so that the
// real TensorFlow can compare the two. `formats_tool COMMAND ARGS...`; prints the error and exits 1
// on failure.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "base/clock.h"
#include "base/files.h"
#include "proto/tensorflow/event.pb.h"
#include "proto/tensorflow/tensor.pb.h"
#include "weft/storage/bundle_merge.h"
#include "weft/storage/checkpoint_state.h"
#include "weft/storage/event_file.h"
#include "weft/storage/summary.h"
#include "weft/storage/tensor_bundle.h"
#include "weft/storage/tfrecord.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::storage {
namespace {

using Args = std::vector<std::string>;

RealFileSystem disk;
RealClock wall_clock;

// SRC DST: every tensor whole.
Status CopyBundle(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(disk, args[0]));
  WEFT_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(disk, args[1]));
  WEFT_ASSIGN_OR_RETURN(const std::vector<BundleTensor> tensors, reader->List());
  for (const BundleTensor& info : tensors) {
    WEFT_ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(info.name));
    WEFT_RETURN_IF_ERROR(writer->Add(info.name, tensor));
  }
  return writer->Finish();
}

// SRC DST ROWS: tensors of rank 1 and more as slices of at most ROWS rows; strings whole, because
// TensorFlow cannot join them.
Status PartitionBundle(const Args& args) {
  int64_t rows = 0;
  if (!absl::SimpleAtoi(args[2], &rows) || rows < 1) return InvalidArgument("Bad ROWS: ", args[2]);
  WEFT_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(disk, args[0]));
  WEFT_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(disk, args[1]));
  WEFT_ASSIGN_OR_RETURN(const std::vector<BundleTensor> tensors, reader->List());
  for (const BundleTensor& info : tensors) {
    if (info.shape.num_elements() < 2 || info.shape.rank() == 0 || !IsPlain(info.dtype)) {
      WEFT_ASSIGN_OR_RETURN(const Tensor tensor, reader->Read(info.name));
      WEFT_RETURN_IF_ERROR(writer->Add(info.name, tensor));
      continue;
    }
    for (int64_t start = 0; start < info.shape.dim(0); start += rows) {
      TensorSlice slice = TensorSlice::Full(info.shape.rank());
      slice.extents[0] = {start, std::min(rows, info.shape.dim(0) - start)};
      WEFT_ASSIGN_OR_RETURN(const Tensor part, reader->ReadSlice(info.name, slice));
      WEFT_RETURN_IF_ERROR(writer->AddSlice(info.name, info.shape, slice, part));
    }
  }
  return writer->Finish();
}

// SRC NAME SLICE DST: one slice, as a tensor of its own.
Status CutBundle(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(disk, args[0]));
  WEFT_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::Parse(args[2]));
  WEFT_ASSIGN_OR_RETURN(const Tensor part, reader->ReadSlice(args[1], slice));
  WEFT_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(disk, args[3]));
  WEFT_RETURN_IF_ERROR(writer->Add(args[1], part));
  return writer->Finish();
}

// DST SRC...
Status MergeBundle(const Args& args) {
  return MergeBundles(disk, absl::MakeConstSpan(args).subspan(1), args[0]);
}

// SRC COMPRESSION DST COMPRESSION
Status CopyRecords(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const Compression from, CompressionFromName(args[1]));
  WEFT_ASSIGN_OR_RETURN(const Compression to, CompressionFromName(args[3]));
  WEFT_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(disk, args[0], from));
  WEFT_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(disk, args[2], to));
  std::string record;
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) return writer->Close();
    WEFT_RETURN_IF_ERROR(writer->Write(record));
  }
}

// SRC FOLDER: the events but the first into a new event file.
Status CopyEvents(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const auto reader, EventFileReader::Open(disk, args[0]));
  WEFT_ASSIGN_OR_RETURN(const auto writer, EventFileWriter::Create(disk, wall_clock, args[1], {}));
  tensorflow::Event event;
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) return writer->Close();
    if (event.file_version().empty()) WEFT_RETURN_IF_ERROR(writer->Write(event));
  }
}

// TENSOR FOLDER: summaries of each kind; the histogram is of the serialized TensorProto.
Status WriteEvents(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(disk, args[0]));
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument("Not a TensorProto: ", args[0]);
  WEFT_ASSIGN_OR_RETURN(const Tensor values, TensorFromProto(proto));
  WEFT_ASSIGN_OR_RETURN(const auto writer, EventFileWriter::Create(disk, wall_clock, args[1], {}));
  for (int step = 0; step < 3; ++step) {
    WEFT_ASSIGN_OR_RETURN(const std::string histogram, HistogramSummary("values", values));
    WEFT_ASSIGN_OR_RETURN(const std::string text, TextSummary("note", Tensor::Scalar("hello")));
    WEFT_ASSIGN_OR_RETURN(
        const std::string all,
        MergeSummaries(
            {ScalarSummary("loss", 1.0f / static_cast<float>(step + 1)), histogram, text}));
    WEFT_RETURN_IF_ERROR(writer->WriteSummary(step, all));
  }
  return writer->Close();
}

// SRC DST
Status CopyTensor(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(disk, args[0]));
  tensorflow::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument("Not a TensorProto: ", args[0]);
  WEFT_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(proto));
  WEFT_RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  return WriteFile(disk, args[1], proto.SerializeAsString());
}

// FOLDER: prints the newest checkpoint.
Status PrintLatest(const Args& args) {
  WEFT_ASSIGN_OR_RETURN(const std::string latest, LatestCheckpoint(disk, args[0]));
  std::printf("%s\n", latest.c_str());
  return absl::OkStatus();
}

// FOLDER PREFIX...: the last is the newest.
Status WriteState(const Args& args) {
  CheckpointState state;
  state.model_checkpoint_path = args.back();
  state.all_model_checkpoint_paths.assign(args.begin() + 1, args.end());
  return WriteCheckpointState(disk, args[0], state);
}

struct Command {
  size_t num_args;  // at least
  Status (*run)(const Args&);
};

Status Run(const std::string& name, const Args& args) {
  const std::map<std::string, Command> commands = {
      {"copy-bundle", {2, CopyBundle}},   {"partition-bundle", {3, PartitionBundle}},
      {"cut-bundle", {4, CutBundle}},     {"merge-bundle", {2, MergeBundle}},
      {"copy-records", {4, CopyRecords}}, {"copy-events", {2, CopyEvents}},
      {"write-events", {2, WriteEvents}}, {"copy-tensor", {2, CopyTensor}},
      {"print-latest", {1, PrintLatest}}, {"write-state", {2, WriteState}},
  };
  const auto found = commands.find(name);
  if (found == commands.end() || args.size() < found->second.num_args) {
    return InvalidArgument("Unknown command or too few arguments: ", name);
  }
  return found->second.run(args);
}

}  // namespace
}  // namespace weft::storage

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const weft::Status status = weft::storage::Run(
      args.empty() ? "" : args[0],
      args.empty() ? args : std::vector<std::string>(args.begin() + 1, args.end()));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
