// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

#include "weft/tensor/rows.h"

namespace weft::serving {
namespace {

// Names what calls that may be joined have in common.
std::string KindOf(const RunCall& call) {
  std::string kind;
  for (const auto& [name, tensor] : call.feeds) {
    absl::StrAppend(&kind, name, " ", static_cast<int>(tensor.dtype()));
    for (int i = 1; i < tensor.rank(); ++i) absl::StrAppend(&kind, ",", tensor.dim(i));
    kind += ';';
  }
  for (const std::string& name : call.fetches) absl::StrAppend(&kind, ">", name);
  return kind;
}

StatusOr<int64_t> RowsOf(const RunCall& call) {
  int64_t rows = -1;
  for (const auto& [name, tensor] : call.feeds) {
    if (tensor.rank() == 0) {
      return InvalidArgument(
          "Batching session Run() input tensors must have at least one dimension: ", name);
    }
    if (rows >= 0 && tensor.dim(0) != rows) {
      return InvalidArgument(
          "Batching session Run() input tensors must have equal 0th-dimension size: ", rows,
          " vs. ", tensor.dim(0), " of ", name);
    }
    rows = tensor.dim(0);
  }
  if (rows < 0) return InvalidArgument("A call without inputs cannot be batched");
  return rows;
}

std::vector<session::Feed> RowsOfFeeds(const std::vector<session::Feed>& feeds, int64_t begin,
                                       int64_t end) {
  std::vector<session::Feed> rows;
  for (const auto& [name, tensor] : feeds) rows.push_back({name, tensor.SliceRows(begin, end)});
  return rows;
}

// What the parts of one call share until the last has been answered.
struct Parts {
  absl::Mutex mutex;
  std::vector<std::vector<Tensor>> results ABSL_GUARDED_BY(mutex);  // by part
  Status status ABSL_GUARDED_BY(mutex);
  size_t missing ABSL_GUARDED_BY(mutex) = 0;
  RunDone done ABSL_GUARDED_BY(mutex);

  void Take(size_t part, StatusOr<std::vector<Tensor>> result) {
    RunDone finished;
    StatusOr<std::vector<Tensor>> joined = std::vector<Tensor>();
    {
      absl::MutexLock lock(&mutex);
      if (result.ok()) {
        results[part] = *std::move(result);
      } else if (status.ok()) {
        status = result.status();
      }
      if (--missing > 0) return;
      finished = std::move(done);
      if (status.ok()) {
        joined = Join();
      } else {
        joined = status;
      }
    }
    finished(std::move(joined));
  }

  StatusOr<std::vector<Tensor>> Join() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::vector<Tensor> joined;
    for (size_t i = 0; i < results[0].size(); ++i) {
      std::vector<Tensor> pieces;
      for (const std::vector<Tensor>& of_part : results) pieces.push_back(of_part[i]);
      WEFT_ASSIGN_OR_RETURN(Tensor whole, JoinRows(pieces));
      joined.push_back(std::move(whole));
    }
    return joined;
  }
};

}  // namespace

Status CheckBatchingOptions(const BatchingOptions& options) {
  if (options.max_rows <= 0)
    return InvalidArgument("max_batch_size is ", options.max_rows, ", expected 1 at least");
  if (options.max_batches <= 0)
    return InvalidArgument("max_enqueued_batches is ", options.max_batches,
                           ", expected 1 at least");
  if (options.threads < 0)
    return InvalidArgument("num_batch_threads is ", options.threads, ", expected 1 at least");
  if (options.timeout < absl::ZeroDuration())
    return InvalidArgument("batch_timeout_micros is negative");
  if (options.max_execution_rows > options.max_rows)
    return InvalidArgument("max_execution_batch_size is ", options.max_execution_rows,
                           ", expected max_batch_size, ", options.max_rows, ", at most");
  if (options.allowed_rows.empty()) return absl::OkStatus();
  if (!std::is_sorted(options.allowed_rows.begin(), options.allowed_rows.end()) ||
      options.allowed_rows.front() <= 0)
    return InvalidArgument("allowed_batch_sizes entries must be in ascending order, from 1 on");
  const int64_t most = options.split_large && options.max_execution_rows > 0
                           ? options.max_execution_rows
                           : options.max_rows;
  if (options.allowed_rows.back() != most)
    return InvalidArgument("The last of allowed_batch_sizes is ", options.allowed_rows.back(),
                           ", expected the most rows of a batch, ", most);
  return absl::OkStatus();
}

Batcher::Batcher(std::string model, const BatchingOptions& options, ThreadPool* pool,
                 TimerQueue* timers, ServingMetrics* metrics, Run run)
    : model_(std::move(model)),
      options_(options),
      pool_(pool),
      timers_(timers),
      metrics_(metrics),
      run_(std::move(run)) {}

Batcher::~Batcher() {
  TimerQueue::Id timer = 0;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    timer = std::exchange(timer_, 0);
  }
  if (timer != 0) timers_->Cancel(timer);
  absl::MutexLock lock(&mutex_);
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
  mutex_.Await(absl::Condition(&is_idle));
}

int64_t Batcher::MostRows() const {
  return options_.split_large && options_.max_execution_rows > 0 ? options_.max_execution_rows
                                                                 : options_.max_rows;
}

void Batcher::Enqueue(RunCall call, RunDone done) {
  Task task{.call = std::move(call), .done = std::move(done), .since = absl::Now()};
  StatusOr<int64_t> rows = RowsOf(task.call);
  if (!rows.ok()) return task.done(rows.status());
  task.rows = *rows;
  if (task.rows > MostRows() && options_.split_large) return Split(std::move(task));
  if (task.rows > options_.max_rows) {
    return task.done(InvalidArgument(
        "Task size ", task.rows, " is larger than maximum input batch size ", options_.max_rows));
  }
  const Status added = Add(&task);
  if (!added.ok()) task.done(added);
}

// Takes the task if it is OK.
Status Batcher::Add(Task* task) {
  const std::string kind = KindOf(task->call);
  absl::MutexLock lock(&mutex_);
  std::deque<Batch>& queue = queues_[kind];
  if (queue.empty() || queue.back().rows + task->rows > MostRows()) {
    if (static_cast<int64_t>(queue.size()) >= options_.max_batches) {
      return Unavailable(
          "The batch scheduling queue to which this task was submitted is full; try again later");
    }
    queue.push_back({.since = task->since});
  }
  Batch& batch = queue.back();
  batch.rows += task->rows;
  batch.tasks.push_back(std::move(*task));
  metrics_->SetQueued(model_, static_cast<double>(++queued_));
  Pump();
  return absl::OkStatus();
}

void Batcher::Split(Task task) {
  const int64_t most = MostRows();
  auto parts = std::make_shared<Parts>();  // shared by the answers of all parts
  const size_t count = static_cast<size_t>((task.rows + most - 1) / most);
  {
    absl::MutexLock lock(&parts->mutex);
    parts->results.resize(count);
    parts->missing = count;
    parts->done = std::move(task.done);
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t begin = static_cast<int64_t>(i) * most;
    const int64_t end = std::min(task.rows, begin + most);
    Task part{.call = task.call, .rows = end - begin, .since = task.since};
    part.call.feeds = RowsOfFeeds(task.call.feeds, begin, end);
    part.done = [parts, i](StatusOr<std::vector<Tensor>> result) {
      parts->Take(i, std::move(result));
    };
    const Status added = Add(&part);
    if (!added.ok()) part.done(added);
  }
}

std::deque<Batcher::Batch>* Batcher::NextReady(absl::Time now, absl::Time* due) {
  std::deque<Batch>* oldest = nullptr;
  for (auto& [kind, queue] : queues_) {
    if (queue.empty()) continue;
    const Batch& first = queue.front();
    const bool is_full = queue.size() > 1 || first.rows >= MostRows();
    const absl::Time ready = is_full ? first.since : first.since + options_.timeout;
    if (ready > now) {
      *due = std::min(*due, ready);
    } else if (oldest == nullptr || first.since < oldest->front().since) {
      oldest = &queue;
    }
  }
  return oldest;
}

void Batcher::Pump() {
  const int threads = options_.threads > 0 ? options_.threads : UsableCores();
  const absl::Time now = absl::Now();
  absl::Time due = absl::InfiniteFuture();
  while (running_ < threads) {
    due = absl::InfiniteFuture();
    std::deque<Batch>* const queue = NextReady(now, &due);
    if (queue == nullptr) break;
    Batch batch = std::move(queue->front());
    queue->pop_front();
    queued_ -= static_cast<int64_t>(batch.tasks.size());
    metrics_->SetQueued(model_, static_cast<double>(queued_));
    ++running_;
    pool_->Schedule([this, batch = std::move(batch)]() mutable { RunBatch(std::move(batch)); });
  }
  // Kinds that are asked for no more go.
  std::erase_if(queues_, [](const auto& entry) { return entry.second.empty(); });
  if (running_ >= threads || due == absl::InfiniteFuture() || stopping_) return;
  if (timer_ != 0) return;  // batches come of age in the order in which they were begun
  timer_ = timers_->Schedule(due - now, [this] {
    absl::MutexLock lock(&mutex_);
    timer_ = 0;
    if (!stopping_) Pump();
  });
}

void Batcher::RunBatch(Batch batch) {
  const absl::Time now = absl::Now();
  std::vector<Task> wanted;
  int64_t rows = 0;
  for (Task& task : batch.tasks) {
    metrics_->ObserveQueueing(model_, now - task.since);
    Cancellation* const cancellation = task.call.cancellation;
    if (cancellation != nullptr && cancellation->IsCancelled()) {
      task.done(cancellation->status());
      continue;
    }
    if (now - task.since >= task.call.timeout) {
      task.done(DeadlineExceeded("The request waited for its batch until its time was over"));
      continue;
    }
    rows += task.rows;
    wanted.push_back(std::move(task));
  }
  if (!wanted.empty()) RunTasks(std::move(wanted), rows);
  absl::MutexLock lock(&mutex_);
  --running_;
  Pump();
}

void Batcher::RunTasks(std::vector<Task> tasks, int64_t rows) {
  const auto allowed =
      std::lower_bound(options_.allowed_rows.begin(), options_.allowed_rows.end(), rows);
  const int64_t padding = rows == 0 || allowed == options_.allowed_rows.end() ? 0 : *allowed - rows;
  RunCall whole{.fetches = tasks[0].call.fetches};
  whole.timeout = absl::ZeroDuration();
  for (const Task& task : tasks) whole.timeout = std::max(whole.timeout, task.call.timeout);
  std::vector<Tensor> results;
  const Status status = [&]() -> Status {
    for (size_t i = 0; i < tasks[0].call.feeds.size(); ++i) {
      std::vector<Tensor> parts;
      for (const Task& task : tasks) parts.push_back(task.call.feeds[i].second);
      Tensor joined = parts[0];
      if (parts.size() > 1 || padding > 0) {
        WEFT_ASSIGN_OR_RETURN(joined, JoinRows(parts, padding));
      }
      whole.feeds.push_back({tasks[0].call.feeds[i].first, std::move(joined)});
    }
    metrics_->ObserveBatch(model_, rows, padding);
    WEFT_RETURN_IF_ERROR(run_(whole, &results));
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].rank() > 0 && results[i].dim(0) == rows + padding) continue;
      return FailedPrecondition(
          "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension "
          "sizes of the input tensors: ",
          whole.fetches[i], " is ", results[i].shape().ToString(), " for ", rows + padding,
          " rows");
    }
    return absl::OkStatus();
  }();
  if (!status.ok() && tasks.size() > 1) {
    // One bad request shall not fail the others.
    for (Task& task : tasks) {
      std::vector<Task> alone;
      const int64_t own = task.rows;
      alone.push_back(std::move(task));
      RunTasks(std::move(alone), own);
    }
    return;
  }
  if (!status.ok()) return tasks[0].done(status);
  int64_t at = 0;
  for (Task& task : tasks) {
    std::vector<Tensor> own;
    for (const Tensor& result : results) own.push_back(result.SliceRows(at, at + task.rows));
    at += task.rows;
    task.done(std::move(own));
  }
}

}  // namespace weft::serving
