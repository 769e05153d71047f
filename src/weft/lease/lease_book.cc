// SPDX-License-Identifier: Apache-2.0
#include "weft/lease/lease_book.h"

#include <utility>

namespace weft::lease {
namespace {

constexpr char kJournal[] = "leases.log";

StatusOr<int64_t> IntOf(const Json& json, absl::string_view name, int64_t otherwise) {
  const Json* const value = json.Find(name);
  if (value == nullptr) return otherwise;
  StatusOr<int64_t> number = value->AsInt();
  if (!number.ok()) return Annotate(number.status(), name);
  return number;
}

std::string TaskOf(absl::string_view worker) {
  return std::string(worker.substr(0, worker.rfind('@')));
}

Json Line(absl::string_view what, Json value) {
  Json line = Json::MakeObject();
  line.Set(what, std::move(value));
  return line;
}

Json DoneLine(const std::string& queue, int64_t epoch, int64_t index) {
  return Line("done", Json(Json::Array{Json(queue), Json(epoch), Json(index)}));
}

}  // namespace

StatusOr<QueueSpec> QueueSpecFrom(const Json& json) {
  QueueSpec spec;
  if (const Json* const name = json.Find("name")) {
    StatusOr<std::string> text = name->AsString();
    if (!text.ok()) return Annotate(text.status(), "name");
    spec.name = *std::move(text);
  }
  WEFT_ASSIGN_OR_RETURN(spec.records, IntOf(json, "records", 0));
  WEFT_ASSIGN_OR_RETURN(spec.per_lease, IntOf(json, "per_lease", 0));
  WEFT_ASSIGN_OR_RETURN(spec.epochs, IntOf(json, "epochs", 1));
  WEFT_ASSIGN_OR_RETURN(const int64_t seed, IntOf(json, "seed", 0));
  spec.seed = static_cast<uint64_t>(seed);
  WEFT_ASSIGN_OR_RETURN(spec.lease_seconds, IntOf(json, "lease_seconds", spec.lease_seconds));
  WEFT_RETURN_IF_ERROR(spec.Check());
  return spec;
}

Json JsonOf(const QueueSpec& spec) {
  Json json = Json::MakeObject();
  json.Set("name", spec.name);
  json.Set("records", spec.records);
  json.Set("per_lease", spec.per_lease);
  json.Set("epochs", spec.epochs);
  json.Set("seed", static_cast<int64_t>(spec.seed));
  json.Set("lease_seconds", spec.lease_seconds);
  return json;
}

StatusOr<std::unique_ptr<LeaseBook>> LeaseBook::Open(FileSystem* files, const std::string& folder,
                                                     Clock* clock) {
  auto book = std::make_unique<LeaseBook>(clock);
  const std::string path = JoinPath(folder, kJournal);
  WEFT_RETURN_IF_ERROR(files->MakeDirectories(folder));
  const StatusOr<std::string> text = ReadFile(*files, path);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  absl::MutexLock lock(&book->mutex_);
  if (text.ok()) {
    if (Status read = book->ReadJournal(*text); !read.ok()) return Annotate(read, path);
  }
  book->files_ = files;
  book->path_ = path;
  WEFT_RETURN_IF_ERROR(book->WriteJournal());
  return book;
}

// Short again, and without a last line that was cut off.
Status LeaseBook::WriteJournal() {
  WEFT_RETURN_IF_ERROR(WriteFileAtomically(*files_, path_, SnapshotLocked()));
  WEFT_ASSIGN_OR_RETURN(journal_, files_->OpenWrite(path_, WriteMode::kAppend));
  return absl::OkStatus();
}

std::string LeaseBook::Snapshot() {
  absl::MutexLock lock(&mutex_);
  return SnapshotLocked();
}

Status LeaseBook::Restore(absl::string_view snapshot) {
  absl::MutexLock lock(&mutex_);
  queues_.clear();
  WEFT_RETURN_IF_ERROR(ReadJournal(snapshot));
  return files_ == nullptr ? absl::OkStatus() : WriteJournal();
}

Status LeaseBook::ReadJournal(absl::string_view text) {
  int number = 1;
  for (size_t end = text.find('\n'); end != absl::string_view::npos; end = text.find('\n')) {
    if (Status read = ReplayLocked(text.substr(0, end)); !read.ok())
      return Annotate(read, absl::StrCat("line ", number));
    text.remove_prefix(end + 1);
    ++number;
  }
  return absl::OkStatus();
}

Status LeaseBook::Replay(absl::string_view line) {
  absl::MutexLock lock(&mutex_);
  return ReplayLocked(line);
}

Status LeaseBook::ReplayLocked(absl::string_view line) {
  const StatusOr<Json> json = Json::Parse(line);
  if (!json.ok()) return DataLoss("Not a line of a journal: ", json.status().message());
  if (const Json* const define = json->Find("define")) {
    StatusOr<QueueSpec> spec = QueueSpecFrom(*define);
    if (!spec.ok()) return DataLoss(spec.status().message());
    if (queues_.size() < kMostQueues) queues_.try_emplace(spec->name, *spec);
    return absl::OkStatus();
  }
  const Json* const done = json->Find("done");
  const Json* const over = json->Find("over");
  const Json::Array& items = done != nullptr   ? done->items()
                             : over != nullptr ? over->items()
                                               : json->items();
  std::vector<int64_t> numbers;
  for (size_t i = 1; i < items.size(); ++i) numbers.push_back(items[i].AsInt().value_or(-1));
  const size_t wanted = done != nullptr ? 2 : 1;
  if ((done == nullptr && over == nullptr) || numbers.size() != wanted || !items[0].is_string())
    return DataLoss("Not a line of a journal: ", line.substr(0, 100));
  const auto found = queues_.find(*items[0].AsString());
  if (found == queues_.end()) return DataLoss("There is no queue ", items[0].Describe());
  return done != nullptr ? found->second.RestoreDone(numbers[0], numbers[1])
                         : found->second.RestoreEpochs(numbers[0]);
}

std::string LeaseBook::SnapshotLocked() const {
  std::string text;
  for (const auto& [name, queue] : queues_) {
    absl::StrAppend(&text, Line("define", JsonOf(queue.spec())).Dump(), "\n");
    if (queue.epochs_over() > 0) {
      const Json over(Json::Array{Json(name), Json(queue.epochs_over())});
      absl::StrAppend(&text, Line("over", over).Dump(), "\n");
    }
    for (const auto& [epoch, index] : queue.Done())
      absl::StrAppend(&text, DoneLine(name, epoch, index).Dump(), "\n");
  }
  return text;
}

Status LeaseBook::Note(const Json& line) {
  return journal_ == nullptr ? absl::OkStatus() : journal_->Append(line.Dump() + "\n");
}

StatusOr<LeaseQueue*> LeaseBook::Find(const std::string& queue) {
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return NotFound("There is no queue '", queue, "'");
  return &found->second;
}

Status LeaseBook::Define(const QueueSpec& spec) {
  WEFT_RETURN_IF_ERROR(spec.Check());
  absl::MutexLock lock(&mutex_);
  const auto found = queues_.find(spec.name);
  if (found != queues_.end()) {
    if (found->second.spec() == spec) return absl::OkStatus();
    return InvalidArgument("Queue ", spec.name, " is there already, as ",
                           JsonOf(found->second.spec()).Dump(), ", and now shall be ",
                           JsonOf(spec).Dump());
  }
  if (queues_.size() >= kMostQueues)
    return ResourceExhausted("There are ", kMostQueues, " queues already");
  WEFT_RETURN_IF_ERROR(Note(Line("define", JsonOf(spec))));
  queues_.try_emplace(spec.name, spec);
  return absl::OkStatus();
}

StatusOr<LeaseBook::Taken> LeaseBook::Take(const std::string& queue, const std::string& worker) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(LeaseQueue* const found, Find(queue));
  const std::string task = TaskOf(worker);
  std::string& process = process_of_[task];
  if (process != worker) {
    process = worker;
    for (auto& [name, each] : queues_) {
      each.WorkersLost(
          [&](const std::string& holder) { return holder != worker && TaskOf(holder) == task; });
    }
  }
  Taken taken;
  taken.what = found->Take(worker, clock_->Monotonic(), &taken.lease);
  return taken;
}

StatusOr<bool> LeaseBook::Finish(const std::string& queue, const std::string& worker,
                                 const Lease& lease) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(LeaseQueue* const found, Find(queue));
  WEFT_ASSIGN_OR_RETURN(const bool counts,
                        found->Finish(worker, lease.epoch, lease.index, lease.number));
  if (counts) WEFT_RETURN_IF_ERROR(Note(DoneLine(queue, lease.epoch, lease.index)));
  return counts;
}

Status LeaseBook::GiveBack(const std::string& queue, const Lease& lease) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(LeaseQueue* const found, Find(queue));
  found->GiveBack(lease.epoch, lease.index, lease.number);
  return absl::OkStatus();
}

StatusOr<QueueCounts> LeaseBook::Counts(const std::string& queue) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(LeaseQueue* const found, Find(queue));
  return found->Counts();
}

int LeaseBook::KeepLiving(const std::set<std::string>& living, absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration taken_before = clock_->Monotonic() - patience;
  int count = 0;
  for (auto& [name, queue] : queues_) {
    count += queue.WorkersGone(
        taken_before, [&](const std::string& holder) { return !living.contains(TaskOf(holder)); });
  }
  return count;
}

int LeaseBook::TaskLost(absl::string_view task) {
  absl::MutexLock lock(&mutex_);
  int ranges = 0;
  for (auto& [name, queue] : queues_)
    ranges += queue.WorkersLost([&](const std::string& holder) { return TaskOf(holder) == task; });
  return ranges;
}

}  // namespace weft::lease
