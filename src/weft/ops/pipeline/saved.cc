// SPDX-License-Identifier: Apache-2.0
// Datasets that are written to files and read again: saved ones and snapshots.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/data/run_apart.h"
#include "weft/data/snapshot_files.h"
#include "weft/data/transform.h"
#include "weft/ops/pipeline/fingerprint_kernel.h"

namespace weft::ops::pipeline::saved {
namespace {

using weft::data::AddDataset;
using weft::data::ApartKernel;
using weft::data::CapturedFunction;
using weft::data::ContextPtr;
using weft::data::Dataset;
using weft::data::DatasetInput;
using weft::data::DatasetOf;
using weft::data::DatasetRef;
using weft::data::DeclaredSpec;
using weft::data::Element;
using weft::data::ElementSpec;
using weft::data::FunctionInput;
using weft::data::IteratorContext;
using weft::data::IteratorPtr;
using weft::data::ReadSnapshotMetadata;
using weft::data::ScalarInput;
using weft::data::SnapshotCompression;
using weft::data::SnapshotMetadata;
using weft::data::SnapshotShard;
using weft::data::SnapshotShards;
using weft::data::SnapshotWriter;
using weft::data::Started;
using weft::data::TransformDataset;
using weft::data::TransformIterator;
using weft::data::VariantOf;

// Which shard an element goes to, by a function of it or by itself.
class Sharding {
 public:
  explicit Sharding(std::optional<CapturedFunction> function) : function_(std::move(function)) {}
  static StatusOr<Sharding> Of(const KernelContext& c) {
    if (!FindAttrOr<bool>(c.call().attrs(), "use_shard_func", true)) return Sharding(std::nullopt);
    WEFT_ASSIGN_OR_RETURN(CapturedFunction function,
                          FunctionInput(c, "shard_func", "shard_func_other_args"));
    return Sharding(std::move(function));
  }
  StatusOr<int64_t> ShardOf(IteratorContext& context, const Element& element) const {
    if (!function_) return 0;
    return context.CallForScalar<int64_t>(*function_, element);
  }

 private:
  std::optional<CapturedFunction> function_;
};

// The elements that `reader`, a function of a dataset of shards, makes of them.
class Read final : public Dataset {
 public:
  Read(ElementSpec spec, DatasetRef shards, CapturedFunction reader, int64_t count)
      : Dataset(std::move(spec)),
        shards_(std::move(shards)),
        reader_(std::move(reader)),
        count_(count) {}
  int64_t Cardinality() const override { return count_; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(const Element results,
                          context->CallAndWait(reader_, {VariantOf(shards_)}));
    if (results.size() != 1) {
      return InvalidArgument("reader_func must give one dataset, got ", results.size(), " values");
    }
    WEFT_ASSIGN_OR_RETURN(const DatasetRef elements, DatasetOf(results[0]));
    return elements->MakeIterator(context);
  }

 private:
  const DatasetRef shards_;
  const CapturedFunction reader_;
  const int64_t count_;
};

// The dataset itself, whose elements are written on the way.
class Written final : public TransformDataset {
 public:
  Written(const DatasetRef& input, std::string folder, std::string hash,
          storage::Compression compression, Sharding sharding)
      : TransformDataset(input),
        folder_(std::move(folder)),
        hash_(std::move(hash)),
        compression_(compression),
        sharding_(std::move(sharding)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Written> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      if (is_over_) return false;
      if (writer_ == nullptr) {
        WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context()->files());
        WEFT_ASSIGN_OR_RETURN(
            writer_, SnapshotWriter::Create(
                         *files, dataset().folder_, dataset().compression_,
                         {.graph_hash = dataset().hash_, .types = dataset().spec().types}));
      }
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
      if (!found) {
        is_over_ = true;
        WEFT_RETURN_IF_ERROR(writer_->Finish());
        return false;
      }
      WEFT_ASSIGN_OR_RETURN(const int64_t shard, dataset().sharding_.ShardOf(*context(), *element));
      WEFT_RETURN_IF_ERROR(writer_->Write(shard, *element));
      return true;
    }

   private:
    std::unique_ptr<SnapshotWriter> writer_;
    bool is_over_ = false;
  };

  const std::string folder_;
  const std::string hash_;
  const storage::Compression compression_;
  const Sharding sharding_;
};

// Reads what lies there whole, else writes it. What another one is writing is left to it.
class Snapshot final : public TransformDataset {
 public:
  Snapshot(const DatasetRef& input, Ref<Written> written, std::string folder,
           storage::Compression compression, CapturedFunction reader)
      : TransformDataset(input),
        written_(std::move(written)),
        folder_(std::move(folder)),
        compression_(compression),
        reader_(std::move(reader)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context->files());
    WEFT_ASSIGN_OR_RETURN(const std::optional<SnapshotMetadata> found,
                          ReadSnapshotMetadata(*files, folder_));
    if (!found) return written_->MakeIterator(context);
    if (!found->is_complete) return input()->MakeIterator(context);
    WEFT_ASSIGN_OR_RETURN(DatasetRef shards,
                          SnapshotShards(*files, folder_, *found, compression_, spec()));
    return MakeRef<Read>(spec(), std::move(shards), reader_, found->num_elements)
        ->MakeIterator(context);
  }

 private:
  const Ref<Written> written_;
  const std::string folder_;
  const storage::Compression compression_;
  const CapturedFunction reader_;
};

StatusOr<storage::Compression> CompressionOf(const KernelContext& c) {
  return SnapshotCompression(FindAttrOr<std::string>(c.call().attrs(), "compression", ""));
}

StatusOr<Ref<Written>> WrittenOf(KernelContext& c, std::string folder, std::string hash) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const storage::Compression compression, CompressionOf(c));
  WEFT_ASSIGN_OR_RETURN(Sharding sharding, Sharding::Of(c));
  return MakeRef<Written>(input, std::move(folder), std::move(hash), compression,
                          std::move(sharding));
}

class SaveKernel final : public ApartKernel<SaveKernel> {
 public:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const std::string folder, ScalarInput<std::string>(c, "path"));
    WEFT_ASSIGN_OR_RETURN(const Ref<Written> written, WrittenOf(c, folder, ""));
    WEFT_ASSIGN_OR_RETURN(const IteratorPtr iterator,
                          written->MakeIterator(IteratorContext::OfStep(c)));
    Element element;
    bool found = true;
    while (found) {
      WEFT_ASSIGN_OR_RETURN(found, iterator->Next(&element));
    }
    return absl::OkStatus();
  }
};

StatusOr<DatasetRef> MakeSave(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string folder, ScalarInput<std::string>(c, "path"));
  WEFT_ASSIGN_OR_RETURN(Ref<Written> written, WrittenOf(c, folder, ""));
  return DatasetRef(std::move(written));
}

StatusOr<DatasetRef> MakeLoad(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string folder, ScalarInput<std::string>(c, "path"));
  WEFT_ASSIGN_OR_RETURN(const storage::Compression compression, CompressionOf(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction reader,
                        FunctionInput(c, "reader_func", "reader_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  if (c.environment().files == nullptr) {
    return FailedPrecondition("This session has no file system");
  }
  FileSystem& files = *c.environment().files;
  WEFT_ASSIGN_OR_RETURN(const std::optional<SnapshotMetadata> found,
                        ReadSnapshotMetadata(files, folder));
  if (!found) return NotFound("Could not find metadata file [", folder, "/snapshot.metadata]");
  WEFT_ASSIGN_OR_RETURN(DatasetRef shards,
                        SnapshotShards(files, folder, *found, compression, spec));
  return DatasetRef(
      MakeRef<Read>(std::move(spec), std::move(shards), std::move(reader), found->num_elements));
}

StatusOr<DatasetRef> MakeSnapshot(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string path, ScalarInput<std::string>(c, "path"));
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  const AttrMap& attrs = c.call().attrs();
  auto fingerprint = static_cast<uint64_t>(FindAttrOr<int64_t>(attrs, "hash", 0));
  if (!FindAttrOr<bool>(attrs, "hash_valid", false)) {
    WEFT_ASSIGN_OR_RETURN(fingerprint, FingerprintOf(*input));
  }
  const std::string hash = absl::StrCat(fingerprint);
  const std::string folder = JoinPath(path, hash);
  WEFT_ASSIGN_OR_RETURN(const storage::Compression compression, CompressionOf(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction reader,
                        FunctionInput(c, "reader_func", "reader_func_other_args"));
  WEFT_ASSIGN_OR_RETURN(Ref<Written> written, WrittenOf(c, folder, hash));
  return DatasetRef(
      MakeRef<Snapshot>(input, std::move(written), folder, compression, std::move(reader)));
}

StatusOr<DatasetRef> MakeReader(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(std::string folder, ScalarInput<std::string>(c, "shard_dir"));
  WEFT_ASSIGN_OR_RETURN(const int64_t start, ScalarInput<int64_t>(c, "start_index"));
  WEFT_ASSIGN_OR_RETURN(const storage::Compression compression, CompressionOf(c));
  WEFT_ASSIGN_OR_RETURN(const auto version, c.call().Attr<int64_t>("version"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return SnapshotShard(std::move(folder), compression, version, start, std::move(spec));
}

constexpr char kTypes[] = "output_types: list(type) >= 1";
constexpr char kShapes[] = "output_shapes: list(shape) >= 1";

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SaveDataset")
                    .Doc("Writes a dataset to the folder `path`, each element to the shard that "
                         "`shard_func` gives for it.")
                    .Input("input_dataset: variant")
                    .Input("path: string")
                    .Input("shard_func_other_args: Tshard_func_args")
                    .Attr("compression: string = ''")
                    .Attr("shard_func: func")
                    .Attr("use_shard_func: bool = true")
                    .Attr("Tshard_func_args: list(type) >= 0")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<SaveKernel>()));
  AddDataset(
      catalogue,
      {.name = "SaveDatasetV2",
       .doc = "The dataset itself, which is written to the folder `path` on the way.",
       .inputs = {"input_dataset: variant", "path: string",
                  "shard_func_other_args: Tshard_func_args"},
       .attrs = {"compression: string = ''", "shard_func: func", "use_shard_func: bool = true",
                 "Tshard_func_args: list(type) >= 0", kTypes, kShapes},
       .is_stateful = true,
       .make = MakeSave});
  AddDataset(catalogue,
             {.name = "LoadDataset",
              .doc = "A dataset that was saved: what `reader_func` makes of a dataset of its "
                     "shards.\nNotFound where none was saved.",
              .inputs = {"path: string", "reader_func_other_args: Treader_func_args"},
              .attrs = {kTypes, kShapes, "compression: string = ''", "reader_func: func",
                        "Treader_func_args: list(type) >= 0"},
              .is_stateful = true,
              .make = MakeLoad});
  AddDataset(
      catalogue,
      {.name = "SnapshotDatasetV2",
       .doc = "The dataset itself, which is written to a folder in `path` the first time and read "
              "from there from then on, as long as the pipeline is the same.",
       .inputs = {"input_dataset: variant", "path: string",
                  "reader_func_other_args: Treader_func_args",
                  "shard_func_other_args: Tshard_func_args"},
       .attrs = {kTypes, kShapes, "compression: string = ''", "reader_prefix: string = ''",
                 "writer_prefix: string = ''", "hash_valid: bool = false", "hash: int = 0",
                 "reader_func: func", "shard_func: func", "Treader_func_args: list(type) >= 0",
                 "Tshard_func_args: list(type) >= 0", "metadata: string = ''"},
       .make = MakeSnapshot});
  AddDataset(catalogue,
             {.name = "SnapshotDatasetReader",
              .doc = "A dataset of the elements in one shard's folder, without the first ones.",
              .inputs = {"shard_dir: string", "start_index: int64"},
              .attrs = {kTypes, kShapes, "compression: string = ''", "version: int"},
              .make = MakeReader});
}

}  // namespace weft::ops::pipeline::saved
