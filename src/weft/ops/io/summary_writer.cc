// SPDX-License-Identifier: Apache-2.0
// Writers of event files as ops: summaries that a graph writes itself.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "proto/tensorflow/event.pb.h"
#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/io/summarize_media_kernel.h"
#include "weft/storage/event_file.h"
#include "weft/storage/summary.h"

namespace weft::ops::io::summary_writer {
namespace {

using storage::EventFileWriter;

// An event file that may not be there yet. Thread-safe.
class Writer final : public Resource {
 public:
  // Nothing happens if it is open.
  Status Open(FileSystem& files, const std::string& folder, int64_t most_waiting,
              const EventFileWriter::Options& options) {
    absl::MutexLock lock(&mutex_);
    if (file_ != nullptr) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(file_, EventFileWriter::Create(files, clock_, folder, options));
    most_waiting_ = most_waiting;
    waiting_ = 0;
    return absl::OkStatus();
  }
  Status Write(tensorflow::Event event) {
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(CheckOpen());
    WEFT_RETURN_IF_ERROR(file_->Write(event));
    if (++waiting_ <= most_waiting_) return absl::OkStatus();
    waiting_ = 0;
    return file_->Flush();
  }
  Status Flush() {
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(CheckOpen());
    waiting_ = 0;
    return file_->Flush();
  }
  Status CloseFile() {
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(CheckOpen());
    return std::exchange(file_, nullptr)->Close();
  }

  std::string DebugString() const override { return "summary writer"; }
  void Close() override {
    absl::MutexLock lock(&mutex_);
    file_.reset();
  }

 private:
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (file_ != nullptr) return absl::OkStatus();
    return NotFound("The summary writer has no file: run its initializer, which names a folder");
  }

  const RealClock clock_;
  absl::Mutex mutex_;
  int64_t most_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<EventFileWriter> file_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<Ref<Writer>> WriterOf(const KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const ResourceHandle* handle, c.input_handle(0));
  if (auto* found = dynamic_cast<Writer*>(handle->object.get())) return Ref<Writer>(found);
  return c.resources().Lookup<Writer>(handle->container, handle->name);
}

template <typename T>
StatusOr<T> ScalarOf(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return c.input(i).scalar<T>();
  return InvalidArgument(c.call().schema().inputs[static_cast<size_t>(i)].name,
                         " must be a scalar, got shape ", c.input(i).shape().ToString());
}

class HandleKernel final : public OpKernel {
 public:
  explicit HandleKernel(const KernelConstruction& c) : resource_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<HandleKernel>(c);
  }
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Writer> writer, resource_.Get(c, []() -> StatusOr<Ref<Writer>> {
      return MakeRef<Writer>();
    }));
    c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                                 .container = resource_.container(c),
                                                 .name = resource_.name(),
                                                 .type_name = "tensorflow::SummaryWriterInterface",
                                                 .object = writer}));
    return absl::OkStatus();
  }

 private:
  NamedResource<Writer> resource_;
};

class OpenKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Writer> writer, WriterOf(c));
    WEFT_ASSIGN_OR_RETURN(const std::string folder, ScalarOf<std::string>(c, 1));
    WEFT_ASSIGN_OR_RETURN(const int32_t most_waiting, ScalarOf<int32_t>(c, 2));
    WEFT_ASSIGN_OR_RETURN(const int32_t flush_ms, ScalarOf<int32_t>(c, 3));
    EventFileWriter::Options options;
    options.flush_every = absl::Milliseconds(flush_ms);
    WEFT_ASSIGN_OR_RETURN(options.suffix, ScalarOf<std::string>(c, 4));
    if (options.suffix.find('/') != std::string::npos) {
      return InvalidArgument("filename_suffix cannot hold a '/': ", options.suffix);
    }
    if (c.environment().files == nullptr) {
      return FailedPrecondition("This session has no file system");
    }
    return writer->Open(*c.environment().files, folder, most_waiting, options);
  }
};

class DatabaseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override {
    return Unimplemented(
        "Summaries go to files, not to a database: TensorBoard reads none any more. Use "
        "CreateSummaryFileWriter");
  }
};

template <Status (Writer::*use)()>
class UseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Writer> writer, WriterOf(c));
    return (writer.get()->*use)();
  }
};

// Writes the event that `make` fills in.
template <Status (*make)(KernelContext& c, tensorflow::Event* event)>
class WriteKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Writer> writer, WriterOf(c));
    tensorflow::Event event;
    WEFT_RETURN_IF_ERROR(make(c, &event));
    return writer->Write(std::move(event));
  }
};

// Sets step and summary.
Status SetSummary(const KernelContext& c, const StatusOr<std::string>& summary,
                  tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const int64_t step, ScalarOf<int64_t>(c, 1));
  WEFT_RETURN_IF_ERROR(summary.status());
  event->set_step(step);
  if (event->mutable_summary()->ParseFromString(*summary)) return absl::OkStatus();
  return Internal("A summary that was just made is malformed");
}

Status TensorEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string tag, ScalarOf<std::string>(c, 3));
  WEFT_ASSIGN_OR_RETURN(const std::string metadata, ScalarOf<std::string>(c, 4));
  return SetSummary(c, storage::TensorSummary(tag, c.input(2), metadata), event);
}

Status ScalarEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string tag, ScalarOf<std::string>(c, 2));
  const Tensor& value = c.input(3);
  if (value.num_elements() != 1) {
    return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
  }
  float number = 0;
  VisitDType(value.dtype(), RealNumbers(),
             [&]<typename T>() { number = static_cast<float>(value.scalar<T>()); });
  return SetSummary(c, storage::ScalarSummary(tag, number), event);
}

Status HistogramEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string tag, ScalarOf<std::string>(c, 2));
  Tensor values = c.input(3);
  if (values.dtype() == DType::kBool) values = values.BitcastTo(DType::kUint8, values.shape());
  return SetSummary(c, storage::HistogramSummary(tag, values), event);
}

Status ImageEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string tag, ScalarOf<std::string>(c, 2));
  WEFT_ASSIGN_OR_RETURN(const int64_t most, c.call().Attr<int64_t>("max_images"));
  if (c.input(4).rank() != 1) {
    return InvalidArgument("bad_color must be a vector, got shape ", c.input(4).shape().ToString());
  }
  return SetSummary(c, SummarizeImages(tag, c.input(3), most, c.input(4)), event);
}

Status AudioEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string tag, ScalarOf<std::string>(c, 2));
  WEFT_ASSIGN_OR_RETURN(const int64_t most, c.call().Attr<int64_t>("max_outputs"));
  WEFT_ASSIGN_OR_RETURN(const float sample_rate, ScalarOf<float>(c, 4));
  return SetSummary(c, SummarizeAudio(tag, c.input(3), most, sample_rate), event);
}

Status GraphEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const int64_t step, ScalarOf<int64_t>(c, 1));
  WEFT_ASSIGN_OR_RETURN(std::string graph, ScalarOf<std::string>(c, 2));
  event->set_step(step);
  event->set_graph_def(std::move(graph));
  return absl::OkStatus();
}

Status RawEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const int64_t step, ScalarOf<int64_t>(c, 1));
  event->set_step(step);
  for (const std::string& bytes : c.input(2).span<std::string>()) {
    tensorflow::Summary one;
    if (!one.ParseFromString(bytes)) {
      return DataLoss("Bad tf.compat.v1.Summary binary proto tensor string");
    }
    event->mutable_summary()->MergeFrom(one);
  }
  return absl::OkStatus();
}

Status ImportedEvent(KernelContext& c, tensorflow::Event* event) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ScalarOf<std::string>(c, 1));
  if (event->ParseFromString(bytes)) return absl::OkStatus();
  return DataLoss("Bad tf.Event binary proto tensor string");
}

OpSpec OnWriter(const char* name, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation).Stateful().Input("writer: resource").Shape(shapes::NoOutputs);
  spec.NoGradient();
  return spec;
}

void AddLife(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SummaryWriter")
                    .Doc("The writer of this container and shared name, which has no file yet.")
                    .Output("writer: resource")
                    .Attr("shared_name: string = ''")
                    .Attr("container: string = ''")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<HandleKernel>(), KernelCost::kInline));
  catalogue.Add(std::move(
      OnWriter("CreateSummaryFileWriter",
               "Gives the writer an event file in logdir, unless it has one.\nEvents go out when "
               "more than max_queue wait, or the oldest for flush_millis.")
          .Input("logdir: string")
          .Input("max_queue: int32")
          .Input("flush_millis: int32")
          .Input("filename_suffix: string")
          .Kernel(MakeKernel<OpenKernel>(), KernelCost::kBlocking)));
  catalogue.Add(std::move(OnWriter("CreateSummaryDbWriter", "Unimplemented.")
                              .Input("db_uri: string")
                              .Input("experiment_name: string")
                              .Input("run_name: string")
                              .Input("user_name: string")
                              .Kernel(MakeKernel<DatabaseKernel>(), KernelCost::kInline)));
  catalogue.Add(
      std::move(OnWriter("FlushSummaryWriter", "Readers see all events so far.")
                    .Kernel(MakeKernel<UseKernel<&Writer::Flush>>(), KernelCost::kBlocking)));
  catalogue.Add(
      std::move(OnWriter("CloseSummaryWriter", "Closes the writer's file.")
                    .Kernel(MakeKernel<UseKernel<&Writer::CloseFile>>(), KernelCost::kBlocking)));
}

void AddSummaries(Catalogue& catalogue) {
  catalogue.Add(
      std::move(OnWriter("WriteSummary",
                         "Writes a tensor, for the plugin that "
                         "summary_metadata names.")
                    .Input("step: int64")
                    .Input("tensor: T")
                    .Input("tag: string")
                    .Input("summary_metadata: string")
                    .Attr("T: type")
                    .Kernel(MakeKernel<WriteKernel<TensorEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(
      std::move(OnWriter("WriteScalarSummary", "Writes a number.")
                    .Input("step: int64")
                    .Input("tag: string")
                    .Input("value: T")
                    .Attr("T: realnumbertype")
                    .Kernel(MakeKernel<WriteKernel<ScalarEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(std::move(
      OnWriter("WriteHistogramSummary",
               "Writes the histogram of all values.\nInvalidArgument for NaN and infinities.")
          .Input("step: int64")
          .Input("tag: string")
          .Input("values: T")
          .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                "uint32, uint64, bool} = DT_FLOAT")
          .Kernel(MakeKernel<WriteKernel<HistogramEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(std::move(
      OnWriter("WriteImageSummary", "Writes up to max_images pictures, as ImageSummary does.")
          .Input("step: int64")
          .Input("tag: string")
          .Input("tensor: T")
          .Input("bad_color: uint8")
          .Attr("max_images: int >= 1 = 3")
          .Attr("T: {uint8, double, float, half} = DT_FLOAT")
          .Kernel(MakeKernel<WriteKernel<ImageEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(std::move(
      OnWriter("WriteAudioSummary", "Writes up to max_outputs clips, as AudioSummary does.")
          .Input("step: int64")
          .Input("tag: string")
          .Input("tensor: float")
          .Input("sample_rate: float")
          .Attr("max_outputs: int >= 1 = 3")
          .Kernel(MakeKernel<WriteKernel<AudioEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(
      std::move(OnWriter("WriteGraphSummary", "Writes a serialized GraphDef.")
                    .Input("step: int64")
                    .Input("tensor: string")
                    .Kernel(MakeKernel<WriteKernel<GraphEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(std::move(OnWriter("WriteRawProtoSummary", "Writes serialized Summary messages.")
                              .Input("step: int64")
                              .Input("tensor: string")
                              .Kernel(MakeKernel<WriteKernel<RawEvent>>(), KernelCost::kBlocking)));
  catalogue.Add(
      std::move(OnWriter("ImportEvent", "Writes a serialized Event.")
                    .Input("event: string")
                    .Kernel(MakeKernel<WriteKernel<ImportedEvent>>(), KernelCost::kBlocking)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddLife(catalogue);
  AddSummaries(catalogue);
}

}  // namespace weft::ops::io::summary_writer
