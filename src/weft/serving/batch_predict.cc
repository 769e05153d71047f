// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/batch_predict.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"

#include "base/log.h"
#include "weft/data/matching_files.h"
#include "weft/serving/predict.h"
#include "weft/serving/rest_values.h"
#include "weft/serving/shard_reader.h"
#include "weft/serving/version_folder.h"
#include "weft/storage/byte_stream.h"

namespace weft::serving {
namespace {

constexpr int64_t kMostShards = 99'999;

// One process's share of the work.
class BatchRun {
 public:
  BatchRun(const BatchPredictOptions& options, Cancellation* cancellation)
      : options_(options), files_(*options.load.files), cancellation_(cancellation) {}

  StatusOr<BatchPredictCounts> Run() {
    WEFT_RETURN_IF_ERROR(files_.MakeDirectories(options_.output));
    WEFT_ASSIGN_OR_RETURN(leases_, ShardLeases::Make(options_.leases, &files_, cancellation_));
    if (leases_->is_keeper()) {
      WEFT_RETURN_IF_ERROR(WriteManifest());
      WEFT_RETURN_IF_ERROR(leases_->Offer(static_cast<int64_t>(shards_.size())));
    } else {
      // The manifest is there when the keeper answers.
      WEFT_RETURN_IF_ERROR(leases_->AwaitKeeper([this] { return IsDone(); }));
      WEFT_RETURN_IF_ERROR(ReadManifest());
    }
    counts_.shards = static_cast<int64_t>(shards_.size());
    RemoveUnfinished();
    while (!IsDone()) {
      WEFT_ASSIGN_OR_RETURN(const std::optional<lease::Lease> lease,
                            leases_->Take([this] { return IsDone(); }));
      if (!lease.has_value()) break;
      WEFT_RETURN_IF_ERROR(Make(static_cast<size_t>(lease->begin)));
      WEFT_RETURN_IF_ERROR(leases_->Finish(*lease));
    }
    if (leases_->is_keeper() && !IsDone()) {
      Json done = Json::MakeObject();
      done.Set("shards", counts_.shards);
      WEFT_RETURN_IF_ERROR(WriteFileAtomically(files_, InOutput("done.json"), done.Dump(2) + "\n"));
    }
    return counts_;
  }

 private:
  std::string InOutput(absl::string_view name) const { return JoinPath(options_.output, name); }
  bool IsThere(const std::string& path) const { return files_.Stat(path).ok(); }
  bool IsDone() const { return IsThere(InOutput("done.json")); }
  std::string PartName(size_t shard) const {
    return absl::StrFormat("part-%05d-of-%05d.jsonl", shard, shards_.size());
  }

  Status FindShards() {
    std::set<std::string> found;
    for (const std::string& pattern : options_.inputs) {
      const size_t before = found.size();
      WEFT_RETURN_IF_ERROR(data::MatchFiles(files_, pattern, &found));
      if (found.size() == before && !found.contains(pattern))
        return NotFound("No file matches ", pattern);
    }
    shards_.assign(found.begin(), found.end());
    if (static_cast<int64_t>(shards_.size()) > kMostShards)
      return InvalidArgument("More than ", kMostShards, " files of inputs: ", shards_.size());
    return absl::OkStatus();
  }

  // What the parts of the folder are of.
  Json Manifest() const {
    Json manifest = Json::MakeObject();
    manifest.Set("model", options_.model);
    manifest.Set("signature", options_.signature.empty() ? kDefaultSignature : options_.signature);
    Json outputs = Json::MakeArray(), inputs = Json::MakeArray();
    for (const std::string& name : options_.output_filter) outputs.Append(name);
    for (const std::string& name : shards_) inputs.Append(name);
    manifest.Set("outputs", std::move(outputs));
    manifest.Set("inputs", std::move(inputs));
    return manifest;
  }

  Status WriteManifest() {
    WEFT_RETURN_IF_ERROR(FindShards());
    const std::string path = InOutput("manifest.json"), text = Manifest().Dump(2) + "\n";
    const StatusOr<std::string> old = ReadFile(files_, path);
    if (absl::IsNotFound(old.status())) return WriteFileAtomically(files_, path, text);
    WEFT_RETURN_IF_ERROR(old.status());
    if (*old == text) return absl::OkStatus();
    return FailedPrecondition("The folder holds predictions of another model or of other inputs: ",
                              path, " differs. Give another folder, or empty this one");
  }

  Status ReadManifest() {
    const std::string path = InOutput("manifest.json");
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files_, path));
    StatusOr<Json> manifest = Json::Parse(text);
    if (!manifest.ok()) return Annotate(manifest.status(), path);
    WEFT_ASSIGN_OR_RETURN(const Json* const inputs, manifest->At("inputs"));
    for (const Json& input : inputs->items()) {
      WEFT_ASSIGN_OR_RETURN(std::string name, input.AsString());
      shards_.push_back(std::move(name));
    }
    return absl::OkStatus();
  }

  // "TASK.PROCESS" of this process, as the names of unfinished files begin behind a '.'.
  std::string Owner() const { return absl::StrReplaceAll(leases_->worker(), {{"@", "."}}); }

  // What earlier processes of this task left behind. Of a process that is alone there may be others
  // at the same folder now, so that theirs stay.
  void RemoveUnfinished() {
    const StatusOr<std::vector<std::string>> names = files_.List(options_.output);
    if (!names.ok() || !options_.leases.task.has_value()) return;
    const std::string task = Owner().substr(0, Owner().rfind('.'));
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, absl::StrCat(".", task, ".")))
        files_.Delete(InOutput(name)).IgnoreError();
    }
  }

  Status LoadModel() {
    if (model_ != nullptr) return absl::OkStatus();
    std::string folder = options_.model;
    WEFT_ASSIGN_OR_RETURN(const FolderState state, LookAt(files_, folder));
    int64_t version = 0;
    if (!state.has_graph) {
      VersionPolicy newest;
      newest.mutable_latest()->set_num_versions(1);
      WEFT_ASSIGN_OR_RETURN(const auto versions, WantedVersions(files_, folder, newest));
      if (versions.empty()) return NotFound("There is no SavedModel in ", folder);
      version = versions.begin()->first;
      folder = versions.begin()->second;
    }
    WEFT_ASSIGN_OR_RETURN(model_, ModelVersion::Load(options_.load, "model", version, folder));
    WEFT_ASSIGN_OR_RETURN(signature_, FindSignature(*model_, options_.signature));
    return absl::OkStatus();
  }

  // The part of `shard`, unless it is there.
  Status Make(size_t shard) {
    if (shard >= shards_.size()) return Internal("There is no shard ", shard);
    const std::string part = InOutput(PartName(shard));
    if (IsThere(part)) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(LoadModel());
    const std::string unfinished = InOutput(absl::StrCat(".", Owner(), ".", PartName(shard)));
    int64_t records = 0;
    const Status written = Annotate(Write(shards_[shard], unfinished, &records), shards_[shard]);
    if (!written.ok() || IsThere(part)) {  // another was faster: its part stays
      files_.Delete(unfinished).IgnoreError();
      return written;
    }
    WEFT_RETURN_IF_ERROR(files_.Rename(unfinished, part));
    WEFT_RETURN_IF_ERROR(files_.SyncDirectory(options_.output));
    WEFT_LOG(INFO) << "Made " << part << ": " << records << " records of " << shards_[shard];
    ++counts_.made;
    counts_.records += records;
    return absl::OkStatus();
  }

  Status Write(const std::string& from, const std::string& to, int64_t* records) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ShardReader> reader,
                          ShardReader::Open(files_, from));
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files_.OpenWrite(to, WriteMode::kTruncate));
    const std::unique_ptr<storage::ByteSink> sink =
        storage::MakeSink(std::move(file), to, storage::Compression::kNone);
    std::vector<std::string> batch;
    while (true) {
      if (cancellation_->IsCancelled()) return cancellation_->status();
      WEFT_RETURN_IF_ERROR(reader->Read(static_cast<size_t>(options_.batch_size), &batch));
      if (batch.empty()) break;
      const StatusOr<std::vector<std::string>> rows = Predictions(*reader, batch);
      if (!rows.ok()) return WhichRecord(*reader, batch, *records, rows.status());
      for (const std::string& row : *rows) WEFT_RETURN_IF_ERROR(sink->Append(row + "\n"));
      *records += static_cast<int64_t>(batch.size());
    }
    WEFT_RETURN_IF_ERROR(sink->Sync());
    return sink->Close();
  }

  // `failed`, with the record of the batch that it is of, if one alone fails too.
  Status WhichRecord(const ShardReader& reader, const std::vector<std::string>& batch,
                     int64_t first, const Status& failed) {
    for (size_t i = 0; i < batch.size() && failed.code() == absl::StatusCode::kInvalidArgument;
         ++i) {
      const auto alone = Predictions(reader, {batch[i]});
      if (alone.ok()) continue;
      return Annotate(alone.status(), absl::StrCat("Record ", first + static_cast<int64_t>(i),
                                                   " (the first is 0)"));
    }
    return Annotate(failed, absl::StrCat("Records from ", first, " to ",
                                         first + static_cast<int64_t>(batch.size()) - 1));
  }

  StatusOr<std::vector<std::string>> Predictions(const ShardReader& reader,
                                                 const std::vector<std::string>& batch) {
    PredictAsk ask{.signature = options_.signature,
                   .output_filter = options_.output_filter,
                   .limits = {.cancellation = cancellation_}};
    WEFT_ASSIGN_OR_RETURN(ask.inputs, InputsOfRecords(batch, reader.holds_examples(), *signature_));
    StatusOr<NamedTensors> outputs = Internal("No answer");
    absl::Notification answered;
    Predict(model_, std::move(ask), [&](StatusOr<NamedTensors> result) {
      outputs = std::move(result);
      answered.Notify();
    });
    answered.WaitForNotification();
    WEFT_RETURN_IF_ERROR(outputs.status());
    WEFT_ASSIGN_OR_RETURN(std::vector<std::string> rows, WriteRestRows(*outputs));
    if (rows.size() == batch.size()) return rows;
    return InvalidArgument("The signature gives ", rows.size(), " rows for ", batch.size(),
                           " records");
  }

  const BatchPredictOptions& options_;
  FileSystem& files_;
  Cancellation* const cancellation_;
  std::vector<std::string> shards_;
  BatchPredictCounts counts_;
  std::unique_ptr<ShardLeases> leases_;
  std::shared_ptr<const ModelVersion> model_;  // shared with calls; loaded for the first shard
  const train::Signature* signature_ = nullptr;
};

}  // namespace

StatusOr<BatchPredictCounts> BatchPredict(const BatchPredictOptions& options,
                                          Cancellation* cancellation) {
  if (options.batch_size < 1)
    return InvalidArgument("Expected a batch size of at least 1, got ", options.batch_size);
  if (options.inputs.empty()) return InvalidArgument("Expected files of inputs, got none");
  return BatchRun(options, cancellation).Run();
}

}  // namespace weft::serving
