// SPDX-License-Identifier: Apache-2.0
// RecordInput: batches of the records of many files, in an order of chance, epoch after epoch.
#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

#include "weft/data/matching_files.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/reader_kernel.h"

namespace weft::ops::state::record_input {
namespace {

struct Options {
  std::string pattern;
  uint64_t seed = 301;
  double shift_ratio = 0;
  size_t buffer_size = 10000;
  size_t batch_size = 32;
};

// Where a node stands in its files. Thread-safe; one caller at a time reads.
class RecordStream final : public Resource {
 public:
  RecordStream(Options options, OpenSource open)
      : options_(std::move(options)), open_(std::move(open)), random_(options_.seed) {}

  // The next records, as many as there are elements; NotFound if there are no files or none has a
  // record.
  Status Read(FileSystem* files, const Cancellation& cancellation,
              absl::Span<std::string> records) {
    absl::MutexLock lock(&mutex_);
    for (std::string& record : records) {
      WEFT_RETURN_IF_ERROR(Fill(files, cancellation));
      record = std::move(buffer_.back());
      buffer_.pop_back();
    }
    return absl::OkStatus();
  }
  std::string DebugString() const override { return "Records of " + options_.pattern; }

 private:
  // Reads until the buffer is full or the epoch's files are at their end. The next epoch begins
  // when the buffer is empty.
  Status Fill(FileSystem* files, const Cancellation& cancellation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (buffer_.size() < options_.buffer_size) {
      if (cancellation.IsCancelled()) return cancellation.status();
      if (source_ == nullptr && next_ == names_.size()) {
        if (!buffer_.empty()) return absl::OkStatus();
        WEFT_RETURN_IF_ERROR(BeginEpoch(files));
      }
      if (source_ == nullptr) {
        WEFT_ASSIGN_OR_RETURN(source_, open_(files, names_[next_]));
        ++next_;
      }
      Record record;
      bool at_end = false;
      WEFT_ASSIGN_OR_RETURN(const bool found, source_->Next(&record, &at_end));
      if (found) Keep(std::move(record.value));
      if (at_end) source_.reset();
    }
    return absl::OkStatus();
  }

  // At a place of chance; who was there goes to the end.
  void Keep(std::string record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    found_any_ = true;
    buffer_.push_back(std::move(record));
    std::swap(buffer_[random_() % buffer_.size()], buffer_.back());
  }

  Status BeginEpoch(FileSystem* files) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (epoch_ > 0 && !found_any_) return NotFound("Found no records in ", options_.pattern);
    std::set<std::string> found;
    for (const absl::string_view pattern : absl::StrSplit(options_.pattern, ',')) {
      WEFT_RETURN_IF_ERROR(data::MatchFiles(*files, std::string(pattern), &found));
    }
    if (found.empty()) return NotFound("Found no files at ", options_.pattern);
    names_.assign(found.begin(), found.end());
    std::shuffle(names_.begin(), names_.end(), std::mt19937_64{options_.seed + epoch_});
    if (options_.shift_ratio >= 0 && options_.shift_ratio < 1) {
      const auto shift =
          static_cast<int64_t>(options_.shift_ratio * static_cast<double>(names_.size()));
      std::rotate(names_.begin(), names_.begin() + shift, names_.end());
    }
    ++epoch_;
    next_ = 0;
    found_any_ = false;
    return absl::OkStatus();
  }

  const Options options_;
  const OpenSource open_;
  absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool found_any_ ABSL_GUARDED_BY(mutex_) = false;  // in this epoch
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // file
  std::unique_ptr<RecordSource> source_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> buffer_ ABSL_GUARDED_BY(mutex_);
};

class RecordInputKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<RecordInputKernel>();
    Options& options = kernel->options_;
    WEFT_ASSIGN_OR_RETURN(options.pattern, c.Attr<std::string>("file_pattern"));
    options.seed = static_cast<uint64_t>(c.AttrOr<int64_t>("file_random_seed", 301));
    options.shift_ratio = c.AttrOr<float>("file_shuffle_shift_ratio", 0);
    const int64_t buffer = c.AttrOr<int64_t>("file_buffer_size", 10000);
    const int64_t batch = c.AttrOr<int64_t>("batch_size", 32);
    if (buffer < 1 || batch < 1) {
      return InvalidArgument("file_buffer_size and batch_size must be positive, got ", buffer,
                             " and ", batch);
    }
    options.buffer_size = static_cast<size_t>(buffer);
    options.batch_size = static_cast<size_t>(batch);
    WEFT_ASSIGN_OR_RETURN(kernel->open_, TfRecords(c.AttrOr<std::string>("compression_type", "")));
    return kernel;
  }

  Status Compute(KernelContext& c) override {
    FileSystem* const files = c.environment().files;
    if (files == nullptr) return FailedPrecondition("This session has no file system");
    // The node has no name of its own for what it shares: each session reads from the beginning.
    const SessionScope* const session = c.environment().session;
    ResourceManager& resources =
        session != nullptr && session->resources != nullptr ? *session->resources : c.resources();
    WEFT_ASSIGN_OR_RETURN(
        const Ref<RecordStream> stream,
        resources.LookupOrCreate<RecordStream>(c.default_container(), c.name(),
                                               [&]() -> StatusOr<Ref<RecordStream>> {
                                                 return MakeRef<RecordStream>(options_, open_);
                                               }));
    WEFT_ASSIGN_OR_RETURN(Tensor * records,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(options_.batch_size)}));
    return stream->Read(files, c.cancellation(), records->mutable_span<std::string>());
  }

 private:
  Options options_;
  OpenSource open_;
};

Status BatchShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t size, c.Attr<int64_t>("batch_size"));
  if (size < 1) return InvalidArgument("batch_size must be positive, got ", size);
  c.set_output(0, PartialShape{size});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("RecordInput")
          .Doc("`batch_size` records of the TFRecord files that match `file_pattern` (several, "
               "with commas), epoch after epoch.\n"
               "Files come in an order of chance, and records from a buffer of `file_buffer_size`; "
               "each record comes once in an epoch. The order is that of `file_random_seed`, which "
               "is not TensorFlow's: there it depends on threads. NotFound if there are no files "
               "or no records.")
          .Output("records: string")
          .Attr("file_pattern: string")
          .Attr("file_random_seed: int = 301")
          .Attr("file_shuffle_shift_ratio: float = 0")
          .Attr("file_buffer_size: int = 10000")
          .Attr("file_parallelism: int = 16")
          .Attr("batch_size: int = 32")
          .Attr("compression_type: string = ''")
          .Stateful()
          .Shape(BatchShape)
          .NoGradient()
          .Kernel(MakeKernel<RecordInputKernel>(), KernelCost::kBlocking));
}

}  // namespace weft::ops::state::record_input
