// SPDX-License-Identifier: Apache-2.0
#include "weft/data/iterator_resource.h"

#include <algorithm>
#include <deque>
#include <list>

#include "absl/strings/str_cat.h"

#include "base/threads.h"

namespace weft::data {

// Outlives the run where a step is cancelled while the run ends.
struct IteratorRun::State : std::enable_shared_from_this<IteratorRun::State> {
  struct Request {
    uint64_t id = 0;
    NextDone done;
    Cancellation* cancellation = nullptr;
    Cancellation::Token token = 0;
    Wait wait;
    void Detach() {
      wait.End();
      if (cancellation != nullptr) cancellation->Deregister(token);
      cancellation = nullptr;
    }
  };
  struct Shard {
    std::deque<StatusOr<NextElement>> ready;
    std::list<Request> requests;
  };

  // Takes the request out, if it still waits.
  void Abandon(size_t shard, uint64_t id) {
    std::list<Request> one;
    {
      absl::MutexLock lock(&mutex);
      std::list<Request>& requests = shards[shard].requests;
      for (auto at = requests.begin(); at != requests.end(); ++at) {
        if (at->id != id) continue;
        one.splice(one.end(), requests, at);
        break;
      }
    }
    for (Request& request : one) {
      request.Detach();
      request.done(Cancelled("The step was cancelled"));
    }
  }

  // Which shard's element is next, if one is wanted and there is room for it; else -1.
  bool WantsMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (is_over) return false;
    const Shard& target = shards[static_cast<size_t>(made) % shards.size()];
    if (static_cast<int64_t>(target.ready.size()) >= most_ahead) return false;
    return std::any_of(shards.begin(), shards.end(), [](const Shard& shard) {
      return !shard.requests.empty() && shard.ready.empty();
    });
  }

  // Pairs requests with what is ready, in order. `told` gets both.
  struct Answer {
    Request request;
    StatusOr<NextElement> result;
  };
  void Pair(std::vector<Answer>* told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (Shard& shard : shards) {
      while (!shard.requests.empty() && (is_over || !shard.ready.empty())) {
        StatusOr<NextElement> result = NextElement{true, {}};
        if (!shard.ready.empty()) {
          result = std::move(shard.ready.front());
          shard.ready.pop_front();
          ++given;
        }
        told->push_back({std::move(shard.requests.front()), std::move(result)});
        shard.requests.pop_front();
      }
    }
  }

  absl::Mutex mutex;
  std::vector<Shard> shards ABSL_GUARDED_BY(mutex);
  int64_t most_ahead = 1;
  int64_t made ABSL_GUARDED_BY(mutex) = 0;
  int64_t given ABSL_GUARDED_BY(mutex) = 0;
  uint64_t next_id ABSL_GUARDED_BY(mutex) = 0;
  bool is_over ABSL_GUARDED_BY(mutex) = false;
  bool is_stopping ABSL_GUARDED_BY(mutex) = false;
  IteratorPtr iterator;  // of the thread
  int64_t to_skip = 0;   // of the thread
  std::unique_ptr<Thread> thread;
};

IteratorRun::IteratorRun(ContextPtr context, DatasetRef dataset, IteratorPtr iterator,
                         Options options)
    : context_(std::move(context)),
      dataset_(std::move(dataset)),
      options_(std::move(options)),
      state_(std::make_shared<State>()) {
  absl::MutexLock lock(&state_->mutex);
  state_->shards = std::vector<State::Shard>(static_cast<size_t>(options_.num_shards));
  state_->most_ahead = std::max<int64_t>(1, options_.most_ahead);
  state_->iterator = std::move(iterator);
  state_->to_skip = options_.skipped;
  state_->given = options_.skipped;
}

IteratorRun::~IteratorRun() {
  context_->cancellation().Cancel(Cancelled("Iterator '", options_.name, "' was removed"));
  std::list<State::Request> left;
  std::unique_ptr<Thread> thread;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->is_stopping = true;
    for (State::Shard& shard : state_->shards) left.splice(left.end(), shard.requests);
    thread = std::move(state_->thread);
  }
  thread.reset();  // joins it
  state_->iterator.reset();
  for (State::Request& request : left) {
    request.Detach();
    request.done(Cancelled("Iterator '", options_.name, "' was removed"));
  }
}

int64_t IteratorRun::given() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->given;
}

void IteratorRun::Next(const KernelContext& c, int shard, NextDone done) {
  std::vector<State::Answer> told;
  Status refused;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->is_stopping) {
      refused = Cancelled("Iterator '", options_.name, "' was removed");
    } else {
      std::list<State::Request>& requests = state_->shards[static_cast<size_t>(shard)].requests;
      const uint64_t id = state_->next_id++;
      State::Request& request = requests.emplace_back();
      request.id = id;
      request.done = std::move(done);
      const auto abandon = [state = state_, shard, id](const Status&) {
        state->Abandon(static_cast<size_t>(shard), id);
      };
      if (c.cancellation().Register(&request.token, abandon)) {
        request.cancellation = &c.cancellation();
        if (state_->thread == nullptr) {
          state_->thread = std::make_unique<Thread>("iterator", [this]() { Loop(); });
        }
        state_->Pair(&told);
        WaitRegistry* const waits = c.environment().waits;
        if (waits != nullptr && !requests.empty() && requests.back().id == id) {
          requests.back().wait = waits->Begin(
              WaitSubject{c.device().name(),
                          absl::StrCat("an element of iterator '", options_.name, "'"), ""},
              c.step_id());
        }
      } else {
        done = std::move(request.done);
        requests.pop_back();
        refused = Cancelled("The step was cancelled");
      }
    }
  }
  if (!refused.ok()) return done(refused);
  for (State::Answer& answer : told) {
    answer.request.Detach();
    answer.request.done(std::move(answer.result));
  }
}

void IteratorRun::Loop() {
  State& state = *state_;
  while (true) {
    {
      absl::MutexLock lock(&state.mutex);
      const auto has_work = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
        return state.is_stopping || state.WantsMore();
      };
      state.mutex.Await(absl::Condition(&has_work));
      if (state.is_stopping) return;
    }
    StatusOr<bool> found = true;
    NextElement next;
    while (state.to_skip > 0 && found.ok() && *found) {
      Element passed;
      found = state.iterator->Next(&passed);
      --state.to_skip;
    }
    if (found.ok() && *found) found = state.iterator->Next(&next.element);
    std::vector<State::Answer> told;
    {
      absl::MutexLock lock(&state.mutex);
      if (found.ok() && !*found) {
        state.is_over = true;
      } else {
        State::Shard& shard = state.shards[static_cast<size_t>(state.made++) % state.shards.size()];
        if (found.ok()) {
          shard.ready.push_back(std::move(next));
        } else {
          shard.ready.push_back(found.status());
        }
      }
      state.Pair(&told);
    }
    for (State::Answer& answer : told) {
      answer.request.Detach();
      // What follows in the step is not this thread's to do.
      context_->device().threads().Schedule(
          [done = std::move(answer.request.done), result = std::move(answer.result)]() mutable {
            done(std::move(result));
          });
    }
  }
}

std::shared_ptr<IteratorRun> IteratorResource::run() const {
  absl::MutexLock lock(&mutex_);
  return run_;
}

bool IteratorResource::has_begun() const { return run() != nullptr; }

void IteratorResource::Close() {
  std::shared_ptr<IteratorRun> last;
  absl::MutexLock lock(&mutex_);
  last = std::move(run_);
  run_ = nullptr;
}

StatusOr<int64_t> IteratorResource::Begin(const KernelContext& c, const DatasetRef& dataset,
                                          int64_t most_ahead) {
  return BeginAt(c, dataset, most_ahead, 0, {});
}

StatusOr<int64_t> IteratorResource::BeginAt(const KernelContext& c, const DatasetRef& dataset,
                                            int64_t most_ahead, int64_t skipped,
                                            std::vector<Seeds> seeds) {
  if (!spec_.types.empty()) WEFT_RETURN_IF_ERROR(CheckSpec(spec_, dataset->spec()));
  const ContextPtr context = IteratorContext::OfKernel(c);
  context->Draw(std::move(seeds));
  WEFT_ASSIGN_OR_RETURN(IteratorPtr iterator, dataset->MakeIterator(context));
  auto next = std::make_shared<IteratorRun>(
      context, dataset, std::move(iterator),
      IteratorRun::Options{
          .name = name_, .num_shards = num_shards_, .most_ahead = most_ahead, .skipped = skipped});
  absl::ReleasableMutexLock lock(&mutex_);
  run_.swap(next);
  const int64_t incarnation = ++incarnation_;
  lock.Release();  // the run before ends without the lock
  return incarnation;
}

void IteratorResource::Next(const KernelContext& c, int shard, int64_t incarnation, NextDone done) {
  std::shared_ptr<IteratorRun> run;
  bool is_another = false;
  {
    absl::MutexLock lock(&mutex_);
    run = run_;
    is_another = incarnation != 0 && incarnation != incarnation_;
  }
  if (run == nullptr) {
    return done(FailedPrecondition(
        "GetNext() failed because the iterator has not been initialized. Ensure that you have run "
        "the initializer operation for this iterator before getting the next element."));
  }
  if (shard < 0 || shard >= num_shards_) {
    return done(InvalidArgument("shard_num must be in [0, ", num_shards_, "), got ", shard));
  }
  if (is_another) return done(InvalidArgument("Invalid incarnation id"));
  run->Next(c, shard, std::move(done));
}

StatusOr<Element> IteratorResource::Save() const {
  const std::shared_ptr<IteratorRun> last = run();
  if (last == nullptr) {
    return FailedPrecondition(
        "Save() failed because the iterator has not been initialized. Ensure that you have run the "
        "initializer operation for this iterator before saving it.");
  }
  std::vector<int64_t> numbers;
  for (const Seeds& seeds : last->context()->drawn()) {
    numbers.push_back(static_cast<int64_t>(seeds.first));
    numbers.push_back(static_cast<int64_t>(seeds.second));
  }
  return Element{Tensor::Scalar(last->given()),
                 Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(numbers.size())}, numbers)};
}

Status IteratorResource::Restore(const KernelContext& c, const Element& saved) {
  const std::shared_ptr<IteratorRun> last = run();
  if (last == nullptr) {
    return FailedPrecondition(
        "Restore() failed because the iterator has not been initialized. Ensure that you have run "
        "the initializer operation for this iterator before restoring it.");
  }
  if (saved.size() != 2 || saved[0].dtype() != DType::kInt64 || !saved[0].shape().IsScalar() ||
      saved[1].dtype() != DType::kInt64 || saved[1].num_elements() % 2 != 0 ||
      saved[0].scalar<int64_t>() < 0) {
    return InvalidArgument("The saved state is none of an iterator");
  }
  std::vector<Seeds> seeds;
  for (int64_t i = 0; i + 1 < saved[1].num_elements(); i += 2) {
    seeds.push_back({static_cast<uint64_t>(saved[1].data<int64_t>()[i]),
                     static_cast<uint64_t>(saved[1].data<int64_t>()[i + 1])});
  }
  return BeginAt(c, last->dataset(), 1, saved[0].scalar<int64_t>(), std::move(seeds)).status();
}

}  // namespace weft::data
