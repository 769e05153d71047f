// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/event_file.h"

#include <utility>

#include <unistd.h>

#include "absl/strings/str_format.h"

#include "proto/tensorflow/event.pb.h"

namespace weft::storage {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

// A name that no file has yet: two writers of one second must not share a file.
StatusOr<std::string> FreePath(FileSystem& files, const std::string& base) {
  std::string path = base;
  for (int i = 1; i < 10000; ++i) {
    const Status status = files.Stat(path).status();
    if (absl::IsNotFound(status)) return path;
    WEFT_RETURN_IF_ERROR(status);
    path = absl::StrCat(base, ".", i);
  }
  return AlreadyExists("There are too many event files of one second: ", base);
}

}  // namespace

EventFileWriter::EventFileWriter(const Clock& clock, std::unique_ptr<RecordWriter> records,
                                 std::string path, absl::Duration flush_every)
    : clock_(clock),
      path_(std::move(path)),
      flush_every_(flush_every),
      records_(std::move(records)),
      last_flush_(clock.Monotonic()) {}

EventFileWriter::~EventFileWriter() { Close().IgnoreError(); }

StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Create(FileSystem& files,
                                                                   const Clock& clock,
                                                                   const std::string& folder,
                                                                   const Options& options) {
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(folder));
  const std::string base = JoinPath(
      folder, absl::StrFormat("events.out.tfevents.%010d.%s%s", absl::ToUnixSeconds(clock.Now()),
                              HostName(), options.suffix));
  WEFT_ASSIGN_OR_RETURN(const std::string path, FreePath(files, base));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RecordWriter> records, RecordWriter::Create(files, path));
  std::unique_ptr<EventFileWriter> writer(
      new EventFileWriter(clock, std::move(records), path, options.flush_every));
  tensorflow::Event first;
  first.set_file_version(kFileVersion);
  first.mutable_source_metadata()->set_writer(options.writer);
  WEFT_RETURN_IF_ERROR(writer->Write(first));
  WEFT_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

double EventFileWriter::Now() const {
  return absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch());
}

Status EventFileWriter::Write(const tensorflow::Event& event) {
  if (event.wall_time() != 0) return WriteRecord(event.SerializeAsString());
  tensorflow::Event timed = event;
  timed.set_wall_time(Now());
  return WriteRecord(timed.SerializeAsString());
}

Status EventFileWriter::WriteSummary(int64_t step, absl::string_view serialized_summary) {
  tensorflow::Event event;
  event.set_wall_time(Now());
  event.set_step(step);
  if (!event.mutable_summary()->ParseFromArray(serialized_summary.data(),
                                               static_cast<int>(serialized_summary.size()))) {
    return InvalidArgument("Summary of step ", step, " is malformed, for event file ", path_);
  }
  return WriteRecord(event.SerializeAsString());
}

Status EventFileWriter::WriteGraph(absl::string_view serialized_graph_def) {
  tensorflow::Event event;
  event.set_wall_time(Now());
  event.set_graph_def(std::string(serialized_graph_def));
  return WriteRecord(event.SerializeAsString());
}

Status EventFileWriter::WriteRecord(absl::string_view record) {
  absl::MutexLock lock(&mutex_);
  if (!records_) return FailedPrecondition("Event file is closed: ", path_);
  WEFT_RETURN_IF_ERROR(records_->Write(record));
  const absl::Duration now = clock_.Monotonic();
  if (now - last_flush_ < flush_every_) return absl::OkStatus();
  last_flush_ = now;
  return records_->Flush();
}

Status EventFileWriter::Flush() {
  absl::MutexLock lock(&mutex_);
  if (!records_) return absl::OkStatus();
  last_flush_ = clock_.Monotonic();
  return records_->Flush();
}

Status EventFileWriter::Close() {
  absl::MutexLock lock(&mutex_);
  if (!records_) return absl::OkStatus();
  return std::exchange(records_, nullptr)->Close();
}

StatusOr<std::unique_ptr<EventFileReader>> EventFileReader::Open(FileSystem& files,
                                                                 const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> records, RecordReader::Open(files, path));
  return std::unique_ptr<EventFileReader>(new EventFileReader(std::move(records), path));
}

StatusOr<bool> EventFileReader::Next(tensorflow::Event* event) {
  const uint64_t offset = records_->offset();
  StatusOr<bool> more = records_->Next(&record_);
  if (!more.ok() && records_->cut_short()) {
    WEFT_RETURN_IF_ERROR(records_->Seek(offset));
    return false;
  }
  WEFT_RETURN_IF_ERROR(more.status());
  if (!*more) return false;
  if (!event->ParseFromString(record_)) {
    return DataLoss("Record at offset ", offset, " is not an event in file ", path_);
  }
  return true;
}

}  // namespace weft::storage
