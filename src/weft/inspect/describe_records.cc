// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "proto/tensorflow/event.pb.h"
#include "proto/tensorflow/example.pb.h"
#include "weft/inspect/describe_kinds.h"
#include "weft/storage/event_file.h"
#include "weft/storage/tfrecord.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::inspect {
namespace {

using tensorflow::Summary;

// What an event file says under one tag.
struct Tag {
  std::string kind;
  int64_t count = 0;
  int64_t first_step = 0;
  int64_t last_step = 0;
  std::string last_text;
  Json last;
};

void TakeTensor(const tensorflow::TensorProto& proto, Tag* tag) {
  const StatusOr<Tensor> tensor = TensorFromProto(proto);
  if (!tensor.ok()) return;
  tag->kind = "tensor";
  tag->last_text = tensor->ToString(4);
  if (tensor->num_elements() != 1) return;
  const Description value = DescribeValues("", *tensor, 1);
  tag->last = value.json.Find("values")->items()[0];
}

void TakeValue(const Summary::Value& value, int64_t step, Tag* tag) {
  if (tag->count == 0) tag->first_step = step;
  ++tag->count;
  tag->last_step = step;
  tag->last = Json();
  switch (value.value_case()) {
    case Summary::Value::kSimpleValue:
      tag->kind = "scalar";
      tag->last = Json(static_cast<double>(value.simple_value()));
      tag->last_text = absl::StrFormat("%g", value.simple_value());
      return;
    case Summary::Value::kHisto:
      tag->kind = "histogram";
      tag->last_text = absl::StrFormat("%g values from %g to %g", value.histo().num(),
                                       value.histo().min(), value.histo().max());
      return;
    case Summary::Value::kImage:
      tag->kind = "image";
      tag->last_text = absl::StrCat(value.image().width(), "x", value.image().height());
      return;
    case Summary::Value::kAudio:
      tag->kind = "audio";
      tag->last_text = absl::StrCat(value.audio().length_frames(), " samples");
      return;
    case Summary::Value::kTensor:
      return TakeTensor(value.tensor(), tag);
    default:
      tag->kind = "other";
  }
}

struct EventCounts {
  int64_t events = 0;
  int64_t graphs = 0;
  int64_t last_step = 0;
  double first_time = 0;
  double last_time = 0;
  std::map<std::string, Tag> tags;

  void Take(const tensorflow::Event& event) {
    if (events++ == 0) first_time = event.wall_time();
    last_time = std::max(last_time, event.wall_time());
    last_step = std::max<int64_t>(last_step, event.step());
    graphs += event.has_graph_def() || event.has_meta_graph_def();
    const Summary& summary = event.summary();
    for (const Summary::Value& value : summary.value()) {
      TakeValue(value, event.step(), &tags[value.tag()]);
    }
  }
};

std::string TimeText(double seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::UnixEpoch() + absl::Seconds(seconds),
                          absl::UTCTimeZone());
}

Description Finish(const std::string& path, const EventCounts& counts, const Status& status) {
  Description description;
  description.status = status;
  description.text =
      absl::StrCat(path, ": event file, ", counts.events, " events to step ", counts.last_step,
                   ", ", TimeText(counts.first_time), " to ", TimeText(counts.last_time), " UTC",
                   counts.graphs > 0 ? ", with a graph\n" : "\n");
  Json tags = Json::MakeArray();
  for (const auto& [name, tag] : counts.tags) {
    absl::StrAppendFormat(&description.text, "  %-40s %-9s %6d values, steps %d to %d, last %s\n",
                          name, tag.kind, tag.count, tag.first_step, tag.last_step, tag.last_text);
    Json item = Json::MakeObject();
    item.Set("tag", name);
    item.Set("kind", tag.kind);
    item.Set("count", tag.count);
    item.Set("first_step", tag.first_step);
    item.Set("last_step", tag.last_step);
    item.Set("last", tag.last);
    tags.Append(std::move(item));
  }
  description.json = Json::MakeObject();
  description.json.Set("kind", "events");
  description.json.Set("path", path);
  description.json.Set("events", counts.events);
  description.json.Set("last_step", counts.last_step);
  description.json.Set("graphs", counts.graphs);
  description.json.Set("tags", std::move(tags));
  return description;
}

// "label: int64 x1", ... of a tf.Example; empty if the record is none.
std::map<std::string, std::string> ExampleFeatures(const std::string& record) {
  std::map<std::string, std::string> features;
  tensorflow::Example example;
  if (!example.ParseFromString(record) || !example.has_features()) return features;
  for (const auto& [name, feature] : example.features().feature()) {
    if (feature.has_bytes_list())
      features[name] = absl::StrCat("bytes x", feature.bytes_list().value_size());
    if (feature.has_float_list())
      features[name] = absl::StrCat("float x", feature.float_list().value_size());
    if (feature.has_int64_list())
      features[name] = absl::StrCat("int64 x", feature.int64_list().value_size());
  }
  return features;
}

}  // namespace

StatusOr<Description> DescribeEvents(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<storage::EventFileReader> reader,
                        storage::EventFileReader::Open(files, path));
  EventCounts counts;
  tensorflow::Event event;
  while (true) {
    const StatusOr<bool> more = reader->Next(&event);
    if (!more.ok()) return Finish(path, counts, more.status());
    if (!*more) return Finish(path, counts, absl::OkStatus());
    counts.Take(event);
  }
}

StatusOr<Description> DescribeRecords(FileSystem& files, const std::string& path,
                                      storage::Compression compression) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<storage::RecordReader> reader,
                        storage::RecordReader::Open(files, path, compression));
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t longest = 0;
  std::map<std::string, std::string> features;
  Description description;
  std::string record;
  while (true) {
    const StatusOr<bool> more = reader->Next(&record);
    description.status = more.status();
    if (!more.ok() || !*more) break;
    if (count++ == 0) features = ExampleFeatures(record);
    bytes += static_cast<int64_t>(record.size());
    longest = std::max(longest, static_cast<int64_t>(record.size()));
  }
  description.text = absl::StrCat(path, ": TFRecord file, ", count,
                                  count == 1 ? " record of " : " records of together ",
                                  BytesText(bytes), ", the longest of ", BytesText(longest), "\n");
  Json example = Json::MakeObject();
  for (const auto& [name, type] : features) {
    absl::StrAppendFormat(&description.text, "  %-40s %s\n", name, type);
    example.Set(name, type);
  }
  description.json = Json::MakeObject();
  description.json.Set("kind", "records");
  description.json.Set("path", path);
  description.json.Set("records", count);
  description.json.Set("bytes", bytes);
  description.json.Set("longest", longest);
  if (!features.empty()) description.json.Set("first_example", std::move(example));
  return description;
}

}  // namespace weft::inspect
