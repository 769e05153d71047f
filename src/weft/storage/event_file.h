// SPDX-License-Identifier: Apache-2.0
// Event files, which TensorBoard shows: TFRecords of tensorflow.Event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "weft/storage/tfrecord.h"

namespace tensorflow {
class Event;
}

namespace weft::storage {

// Thread-safe. Buffers; what is written longer than `flush_every` ago goes out with the next write.
class EventFileWriter {
 public:
  struct Options {
    absl::Duration flush_every = absl::Seconds(120);
    std::string suffix;           // after the host's name, such as ".v2"
    std::string writer = "weft";  // what the first event says of the file's origin
  };
  // Makes `folder` if it is not there, and in it events.out.tfevents.<seconds>.<host><suffix>, with
  // a number more if that exists. Borrows `files` and `clock`.
  static StatusOr<std::unique_ptr<EventFileWriter>> Create(FileSystem& files, const Clock& clock,
                                                           const std::string& folder,
                                                           const Options& options);
  ~EventFileWriter();

  // A wall_time of 0 becomes now.
  Status Write(const tensorflow::Event& event);
  // One event with a serialized Summary or GraphDef; InvalidArgument if a summary is malformed.
  Status WriteSummary(int64_t step, absl::string_view serialized_summary);
  Status WriteGraph(absl::string_view serialized_graph_def);
  // Readers see all events so far.
  Status Flush();
  // Flushes; the writer takes no more. Closing twice is fine.
  Status Close();
  const std::string& path() const { return path_; }

 private:
  EventFileWriter(const Clock& clock, std::unique_ptr<RecordWriter> records, std::string path,
                  absl::Duration flush_every);
  double Now() const;
  Status WriteRecord(absl::string_view record);

  const Clock& clock_;
  const std::string path_;
  const absl::Duration flush_every_;
  absl::Mutex mutex_;
  std::unique_ptr<RecordWriter> records_ ABSL_GUARDED_BY(mutex_);  // null once closed
  absl::Duration last_flush_ ABSL_GUARDED_BY(mutex_);
};

// Not thread-safe.
class EventFileReader {
 public:
  static StatusOr<std::unique_ptr<EventFileReader>> Open(FileSystem& files,
                                                         const std::string& path);

  // True with the next event, false when there is none yet: a file that is being written may end in
  // half a record, and a later call goes on from there. DataLoss for damaged records.
  StatusOr<bool> Next(tensorflow::Event* event);

 private:
  EventFileReader(std::unique_ptr<RecordReader> records, std::string path)
      : records_(std::move(records)), path_(std::move(path)) {}

  const std::unique_ptr<RecordReader> records_;
  const std::string path_;
  std::string record_;
};

}  // namespace weft::storage
