// SPDX-License-Identifier: Apache-2.0
// The records of files: TFRecord, lines of text, records of one length.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/data/dataset_op.h"
#include "weft/storage/byte_stream.h"
#include "weft/storage/tfrecord.h"

namespace weft::data::record_files {
namespace {

// The records of one file.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  virtual StatusOr<bool> Next(std::string* record) = 0;
};

class TfRecords final : public RecordStream {
 public:
  explicit TfRecords(std::unique_ptr<storage::RecordReader> reader) : reader_(std::move(reader)) {}
  StatusOr<bool> Next(std::string* record) override { return reader_->Next(record); }

 private:
  const std::unique_ptr<storage::RecordReader> reader_;
};

// Bytes in blocks, from which lines and records are cut.
class Blocks {
 public:
  explicit Blocks(std::unique_ptr<storage::ByteSource> source) : source_(std::move(source)) {
    buffer_.resize(256 << 10);
  }
  // What is there and was not taken; empty at the end.
  StatusOr<absl::string_view> Peek() {
    if (at_ == size_) {
      at_ = 0;
      WEFT_ASSIGN_OR_RETURN(size_, source_->Read(absl::MakeSpan(buffer_)));
    }
    return absl::string_view(buffer_.data() + at_, size_ - at_);
  }
  void Take(size_t bytes) { at_ += bytes; }

 private:
  const std::unique_ptr<storage::ByteSource> source_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
};

class Lines final : public RecordStream {
 public:
  explicit Lines(std::unique_ptr<storage::ByteSource> source) : blocks_(std::move(source)) {}
  StatusOr<bool> Next(std::string* record) override {
    record->clear();
    bool any = false;
    while (true) {
      WEFT_ASSIGN_OR_RETURN(const absl::string_view bytes, blocks_.Peek());
      if (bytes.empty()) break;
      any = true;
      const size_t end = bytes.find('\n');
      absl::StrAppend(record, bytes.substr(0, end));
      blocks_.Take(std::min(bytes.size(), end == absl::string_view::npos ? end : end + 1));
      if (end != absl::string_view::npos) break;
    }
    if (absl::EndsWith(*record, "\r")) record->pop_back();
    return any;
  }

 private:
  Blocks blocks_;
};

struct FixedLength {
  int64_t header = 0;
  int64_t record = 1;
  int64_t footer = 0;
};

class FixedRecords final : public RecordStream {
 public:
  FixedRecords(const FixedLength& layout, std::unique_ptr<storage::ByteSource> source,
               std::string path)
      : layout_(layout), blocks_(std::move(source)), path_(std::move(path)) {}
  StatusOr<bool> Next(std::string* record) override {
    if (!has_begun_) {
      has_begun_ = true;
      WEFT_ASSIGN_OR_RETURN(const bool has_header, Hold(layout_.header));
      if (!has_header) {
        return InvalidArgument("File ", path_, " is shorter than its header of ", layout_.header,
                               " bytes");
      }
      held_.erase(0, static_cast<size_t>(layout_.header));
    }
    WEFT_ASSIGN_OR_RETURN(const bool has_record, Hold(layout_.record + layout_.footer));
    if (has_record) {
      record->assign(held_, 0, static_cast<size_t>(layout_.record));
      held_.erase(0, static_cast<size_t>(layout_.record));
      return true;
    }
    if (static_cast<int64_t>(held_.size()) == layout_.footer) return false;
    return InvalidArgument("Excess bytes in file ", path_, ": ", held_.size(),
                           " are left, which is no record of ", layout_.record,
                           " bytes and a footer of ", layout_.footer);
  }

 private:
  // True if at least `bytes` are held.
  StatusOr<bool> Hold(int64_t bytes) {
    while (static_cast<int64_t>(held_.size()) < bytes) {
      WEFT_ASSIGN_OR_RETURN(const absl::string_view more, blocks_.Peek());
      if (more.empty()) return false;
      const size_t wanted = std::min(more.size(), static_cast<size_t>(bytes) - held_.size());
      absl::StrAppend(&held_, more.substr(0, wanted));
      blocks_.Take(wanted);
    }
    return true;
  }

  const FixedLength layout_;
  Blocks blocks_;
  const std::string path_;
  std::string held_;
  bool has_begun_ = false;
};

class Files final : public Dataset {
 public:
  enum class Kind { kTfRecord, kText, kFixedLength };
  struct Plan {
    Kind kind = Kind::kTfRecord;
    std::vector<std::string> names;
    storage::Compression compression = storage::Compression::kNone;
    std::vector<int64_t> offsets;  // where reading begins, one for each file, or none
    FixedLength layout;
  };
  explicit Files(Plan plan)
      : Dataset({{DType::kString}, {PartialShape(Shape())}}), plan_(std::move(plan)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Files>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Files> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      std::string record;
      while (true) {
        WEFT_RETURN_IF_ERROR(context_->Check());
        if (stream_ == nullptr) {
          if (file_ == dataset_->plan_.names.size()) return false;
          // A file that cannot be read is passed over by who goes on after the error.
          WEFT_ASSIGN_OR_RETURN(stream_, Open(file_++));
        }
        const StatusOr<bool> found = stream_->Next(&record);
        if (!found.ok()) {
          stream_.reset();
          return found.status();
        }
        if (*found) break;
        stream_.reset();
      }
      *element = {Tensor::Scalar(std::move(record))};
      return true;
    }

   private:
    StatusOr<std::unique_ptr<RecordStream>> Open(size_t i) {
      const Plan& plan = dataset_->plan_;
      const std::string& path = plan.names[i];
      WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context_->files());
      if (plan.kind == Kind::kTfRecord) {
        WEFT_ASSIGN_OR_RETURN(auto reader,
                              storage::RecordReader::Open(*files, path, plan.compression));
        if (i < plan.offsets.size() && plan.offsets[i] != 0) {
          WEFT_RETURN_IF_ERROR(reader->Seek(static_cast<uint64_t>(plan.offsets[i])));
        }
        return std::make_unique<TfRecords>(std::move(reader));
      }
      WEFT_ASSIGN_OR_RETURN(auto file, files->OpenRead(path));
      auto source = storage::MakeSource(std::move(file), path, plan.compression);
      if (plan.kind == Kind::kFixedLength && plan.compression == storage::Compression::kNone) {
        WEFT_ASSIGN_OR_RETURN(const FileStat stat, files->Stat(path));
        const int64_t body =
            static_cast<int64_t>(stat.size_bytes) - plan.layout.header - plan.layout.footer;
        if (body < 0 || body % plan.layout.record != 0) {
          return InvalidArgument("Excess bytes in file ", path, ": a header of ",
                                 plan.layout.header, " bytes and a footer of ", plan.layout.footer,
                                 " leave ", body, ", which are no records of ", plan.layout.record,
                                 " bytes");
        }
      }
      if (plan.kind == Kind::kText) return std::make_unique<Lines>(std::move(source));
      return std::make_unique<FixedRecords>(plan.layout, std::move(source), path);
    }

    const Ref<const Files> dataset_;
    const ContextPtr context_;
    size_t file_ = 0;
    std::unique_ptr<RecordStream> stream_;
  };

  const Plan plan_;
};

StatusOr<Files::Plan> PlanOf(KernelContext& c, Files::Kind kind) {
  Files::Plan plan;
  plan.kind = kind;
  WEFT_ASSIGN_OR_RETURN(plan.names, VectorInput<std::string>(c, "filenames"));
  WEFT_ASSIGN_OR_RETURN(const int64_t buffer, ScalarInput<int64_t>(c, "buffer_size"));
  // -1: as large as seems good.
  if (buffer < -1) return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  if (InputsNamed(c, "compression_type").ok()) {
    WEFT_ASSIGN_OR_RETURN(const std::string name, ScalarInput<std::string>(c, "compression_type"));
    const StatusOr<storage::Compression> found = storage::CompressionFromName(name);
    if (!found.ok()) return InvalidArgument("Unsupported compression_type: ", name, ".");
    plan.compression = *found;
  }
  return plan;
}

StatusOr<DatasetRef> MakeTfRecord(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Files::Plan plan, PlanOf(c, Files::Kind::kTfRecord));
  if (InputsNamed(c, "byte_offsets").ok()) {
    WEFT_ASSIGN_OR_RETURN(plan.offsets, VectorInput<int64_t>(c, "byte_offsets"));
    if (!plan.offsets.empty() && plan.offsets.size() != plan.names.size()) {
      return InvalidArgument("`byte_offsets` must have as many elements as `filenames`");
    }
    for (const int64_t offset : plan.offsets) {
      if (offset < 0) return InvalidArgument("`byte_offsets` must be at least 0, got ", offset);
    }
  }
  return DatasetRef(MakeRef<Files>(std::move(plan)));
}

StatusOr<DatasetRef> MakeText(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Files::Plan plan, PlanOf(c, Files::Kind::kText));
  return DatasetRef(MakeRef<Files>(std::move(plan)));
}

StatusOr<DatasetRef> MakeFixed(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Files::Plan plan, PlanOf(c, Files::Kind::kFixedLength));
  WEFT_ASSIGN_OR_RETURN(plan.layout.header, ScalarInput<int64_t>(c, "header_bytes"));
  WEFT_ASSIGN_OR_RETURN(plan.layout.record, ScalarInput<int64_t>(c, "record_bytes"));
  WEFT_ASSIGN_OR_RETURN(plan.layout.footer, ScalarInput<int64_t>(c, "footer_bytes"));
  constexpr int64_t kMost = int64_t{1} << 40;
  if (plan.layout.header < 0 || plan.layout.header > kMost) {
    return InvalidArgument("header_bytes must be >= 0");
  }
  if (plan.layout.record <= 0 || plan.layout.record > kMost) {
    return InvalidArgument("record_bytes must be > 0");
  }
  if (plan.layout.footer < 0 || plan.layout.footer > kMost) {
    return InvalidArgument("footer_bytes must be >= 0");
  }
  return DatasetRef(MakeRef<Files>(std::move(plan)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "TFRecordDataset",
              .doc = "A dataset of the records of TFRecord files.",
              .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64"},
              .attrs = {"metadata: string = ''"},
              .is_stateful = true,
              .make = MakeTfRecord});
  AddDataset(catalogue, {.name = "TFRecordDatasetV2",
                         .doc = "A dataset of the records of TFRecord files, each from a byte on.",
                         .inputs = {"filenames: string", "compression_type: string",
                                    "buffer_size: int64", "byte_offsets: int64"},
                         .attrs = {"metadata: string = ''"},
                         .is_stateful = true,
                         .make = MakeTfRecord});
  AddDataset(catalogue,
             {.name = "TextLineDataset",
              .doc = "A dataset of the lines of text files.",
              .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64"},
              .attrs = {"metadata: string = ''"},
              .is_stateful = true,
              .make = MakeText});
  AddDataset(catalogue,
             {.name = "FixedLengthRecordDataset",
              .doc = "A dataset of the records of files in which all are of one length.",
              .inputs = {"filenames: string", "header_bytes: int64", "record_bytes: int64",
                         "footer_bytes: int64", "buffer_size: int64"},
              .attrs = {"metadata: string = ''"},
              .is_stateful = true,
              .make = MakeFixed});
  AddDataset(catalogue,
             {.name = "FixedLengthRecordDatasetV2",
              .doc = "A dataset of the records of files in which all are of one length.",
              .inputs = {"filenames: string", "header_bytes: int64", "record_bytes: int64",
                         "footer_bytes: int64", "buffer_size: int64", "compression_type: string"},
              .attrs = {"metadata: string = ''"},
              .is_stateful = true,
              .make = MakeFixed});
}

}  // namespace weft::data::record_files
