// SPDX-License-Identifier: Apache-2.0
// Rows that Batch put together, given back to the steps that they came from.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/call_batcher_kernel.h"
#include "weft/tensor/rows.h"

namespace weft::ops::state::unbatch {
namespace {

struct Entry {
  int64_t id = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// The rows of `batch_index`, once they are known to lie in a tensor of `rows` rows.
StatusOr<std::vector<Entry>> EntriesOf(const Tensor& index, int64_t rows) {
  if (index.rank() != 2 || index.dim(1) != 3) {
    return InvalidArgument(
        "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: ",
        index.shape().ToString(), ".");
  }
  if (index.dim(0) > rows) {
    return InvalidArgument(
        "Wrong shape for index tensor. Expected 0th dimension size to be no greater than ", rows,
        "; Got: ", index.dim(0), ".");
  }
  std::vector<Entry> entries;
  for (int64_t i = 0; i < index.dim(0); ++i) {
    const int64_t* row = index.data<int64_t>() + 3 * i;
    if (row[1] < 0 || row[2] < row[1] || row[2] > rows) {
      return InvalidArgument("Rows ", row[1], " to ", row[2], " of call ", row[0],
                             " do not lie in a batch of ", rows, " rows");
    }
    entries.push_back({row[0], row[1], row[2]});
  }
  return entries;
}

Status CheckId(const Tensor& id) {
  if (id.shape().IsScalar()) return absl::OkStatus();
  return InvalidArgument("Input id should be scalar; Got: ", id.shape().ToString(), ".");
}

// Tensors by the call that they are for, and calls that wait for theirs. What gives the others
// theirs may come before or after them. Thread-safe.
class Exchange final : public Resource {
 public:
  // `patience`: how long a call waits, and a tensor is kept; infinite: while the call lives.
  Exchange(std::string name, absl::Duration patience)
      : name_(std::move(name)), patience_(patience) {}

  // Leaves tensors for other calls. AlreadyExists if one is there.
  Status Put(std::vector<std::pair<int64_t, Tensor>> tensors) {
    std::vector<std::pair<Waiter, Tensor>> served;
    Status status;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time now = absl::Now();
      std::erase_if(tensors_, [&](const auto& entry) { return entry.second.until < now; });
      for (auto& [id, tensor] : tensors) {
        const auto waiter = waiters_.find(id);
        if (waiter != waiters_.end()) {
          served.emplace_back(std::move(waiter->second), std::move(tensor));
          waiters_.erase(waiter);
        } else if (!tensors_.try_emplace(id, Kept{std::move(tensor), now + patience_}).second) {
          status.Update(AlreadyExists("Multiple tensors returned for same batch key."));
        }
      }
    }
    for (auto& [waiter, tensor] : served) Tell(&waiter, std::move(tensor));
    return status;
  }

  using Taken = absl::AnyInvocable<void(StatusOr<Tensor>)>;
  // Calls `taken` with the tensor of `id`, once it is there.
  void Take(const KernelContext& c, int64_t id, Taken taken) {
    StatusOr<Tensor> result = Find(c, id, &taken);
    if (taken) taken(std::move(result));
  }

  void Close() override {
    std::map<int64_t, Waiter> all;
    {
      absl::MutexLock lock(&mutex_);
      all.swap(waiters_);
      tensors_.clear();
    }
    for (auto& [id, waiter] : all) Tell(&waiter, Cancelled("'", name_, "' was removed"));
  }
  std::string DebugString() const override { return absl::StrCat("Parts of batches ", name_); }

 private:
  struct Waiter {
    Taken taken;
    WaitingCall call;
    TimerQueue::Id timer = 0;
    ThreadPool* threads = nullptr;
  };
  struct Kept {
    Tensor tensor;
    absl::Time until;
  };

  // The tensor, or an error, or neither: then it has `taken` and waits.
  StatusOr<Tensor> Find(const KernelContext& c, int64_t id, Taken* taken) {
    absl::MutexLock lock(&mutex_);
    if (const auto found = tensors_.find(id); found != tensors_.end()) {
      Tensor tensor = std::move(found->second.tensor);
      tensors_.erase(found);
      return tensor;
    }
    const auto [at, is_new] = waiters_.try_emplace(id);
    if (!is_new) {
      return AlreadyExists("Multiple session runs with the same batch key.");
    }
    Waiter& waiter = at->second;
    const bool waits = waiter.call.Begin(
        Caller::Of(c), absl::StrCat("its rows of a batch of '", name_, "'"),
        [self = Ref<Exchange>(this), id](const Status& reason) { self->End(id, reason); });
    if (!waits) {
      waiters_.erase(at);
      return Cancelled("'", name_, "': the step was cancelled");
    }
    waiter.taken = std::move(*taken);
    *taken = nullptr;
    waiter.threads = &c.device().threads();
    if (patience_ < absl::InfiniteDuration()) {
      waiter.timer = timers_.Schedule(patience_, [this, id] { Expire(id); });
    }
    return Tensor();
  }

  void End(int64_t id, const Status& reason) {
    std::map<int64_t, Waiter>::node_type waiter;
    {
      absl::MutexLock lock(&mutex_);
      waiter = waiters_.extract(id);
    }
    if (!waiter.empty()) Tell(&waiter.mapped(), reason);
  }

  // On the timers' thread, which must not let go of the last reference to this.
  void Expire(int64_t id) {
    std::map<int64_t, Waiter>::node_type waiter;
    {
      absl::MutexLock lock(&mutex_);
      waiter = waiters_.extract(id);
    }
    if (waiter.empty()) return;
    waiter.mapped().timer = 0;
    ThreadPool* const threads = waiter.mapped().threads;
    threads->Schedule([waiter = std::move(waiter)]() mutable {
      waiter.mapped().call.Detach();
      waiter.mapped().taken(DeadlineExceeded("Batched data did not arrive within timeout window."));
    });
  }

  void Tell(Waiter* waiter, StatusOr<Tensor> result) {
    if (waiter->timer != 0) timers_.Cancel(waiter->timer);
    waiter->call.Detach();
    waiter->taken(std::move(result));
  }

  const std::string name_;
  const absl::Duration patience_;
  absl::Mutex mutex_;
  std::map<int64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Kept> tensors_ ABSL_GUARDED_BY(mutex_);
  TimerQueue timers_;  // last: ends before what its calls touch
};

class UnbatchKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t micros, c.Attr<int64_t>("timeout_micros"));
    return std::make_unique<UnbatchKernel>(c, absl::Microseconds(micros));
  }
  UnbatchKernel(const KernelConstruction& c, absl::Duration patience)
      : resource_(c), patience_(patience) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    const StatusOr<Ref<Exchange>> exchange = resource_.Get(c, [&]() -> StatusOr<Ref<Exchange>> {
      return MakeRef<Exchange>(resource_.name(), patience_);
    });
    if (!exchange.ok()) return done(exchange.status());
    const StatusOr<int64_t> id = Share(c, **exchange);
    if (!id.ok()) return done(id.status());
    (*exchange)->Take(c, *id, [&c, done = std::move(done)](StatusOr<Tensor> rows) mutable {
      if (rows.ok()) c.SetOutput(0, *std::move(rows));
      done(rows.status());
    });
  }

 private:
  // Leaves the parts of the batch, if this call has one, and gives its own id.
  static StatusOr<int64_t> Share(const KernelContext& c, Exchange& exchange) {
    if (c.input(0).rank() == 0) return InvalidArgument("batched_tensor must not be a scalar");
    WEFT_ASSIGN_OR_RETURN(const std::vector<Entry> entries,
                          EntriesOf(c.input(1), c.input(0).dim(0)));
    WEFT_RETURN_IF_ERROR(CheckId(c.input(2)));
    std::vector<std::pair<int64_t, Tensor>> parts;
    for (const Entry& entry : entries) {
      WEFT_ASSIGN_OR_RETURN(Tensor part, CopyRows(c.input(0), entry.begin, entry.end));
      parts.emplace_back(entry.id, std::move(part));
    }
    WEFT_RETURN_IF_ERROR(exchange.Put(std::move(parts)));
    return *c.input(2).data<int64_t>();
  }

  NamedResource<Exchange> resource_;
  const absl::Duration patience_;
};

// Takes the gradients of the calls of a batch one after another, as they come.
class Gathering final : public RefCounted {
 public:
  Gathering(KernelContext* context, Ref<Exchange> exchange, std::vector<Entry> entries,
            OpKernel::Done done)
      : context_(context),
        exchange_(std::move(exchange)),
        entries_(std::move(entries)),
        done_(std::move(done)) {}

  void Next() {
    const Ref<Gathering> self(this);
    do {
      if (!status_.ok() || parts_.size() == entries_.size()) return End();
      met_.store(false, std::memory_order_relaxed);
      exchange_->Take(*context_, entries_[parts_.size()].id, [self](StatusOr<Tensor> part) {
        self->status_ = part.status();
        if (part.ok()) self->parts_.push_back(*std::move(part));
        if (self->met_.exchange(true, std::memory_order_acq_rel)) self->Next();
      });
      // Whoever is second of "the call returned" and "the tensor is there" goes on.
    } while (met_.exchange(true, std::memory_order_acq_rel));
  }

 private:
  void End() {
    StatusOr<Tensor> joined = status_.ok() ? JoinRows(parts_) : StatusOr<Tensor>(status_);
    if (joined.ok()) context_->SetOutput(0, *std::move(joined));
    done_(joined.status());
  }

  KernelContext* const context_;  // lives until done_ is called
  const Ref<Exchange> exchange_;
  const std::vector<Entry> entries_;
  std::vector<Tensor> parts_;
  Status status_;
  OpKernel::Done done_;
  std::atomic<bool> met_{false};
};

class UnbatchGradKernel final : public AsyncOpKernel {
 public:
  explicit UnbatchGradKernel(const KernelConstruction& c) : resource_(c) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    const StatusOr<Ref<Exchange>> exchange = resource_.Get(c, [&]() -> StatusOr<Ref<Exchange>> {
      return MakeRef<Exchange>(resource_.name(), absl::InfiniteDuration());
    });
    if (!exchange.ok()) return done(exchange.status());
    StatusOr<std::vector<Entry>> entries = Check(c);
    if (!entries.ok()) return done(entries.status());
    const Status put = (*exchange)->Put({{*c.input(3).data<int64_t>(), c.input(2)}});
    if (!put.ok()) return done(InvalidArgument("Two runs with the same batch key."));
    if (entries->empty()) {
      StatusOr<Tensor> none = CopyRows(c.input(2), 0, 0);
      if (none.ok()) c.SetOutput(0, *std::move(none));
      return done(none.status());
    }
    MakeRef<Gathering>(&c, *exchange, *std::move(entries), std::move(done))->Next();
  }

 private:
  // The calls of the batch, if this call has one.
  static StatusOr<std::vector<Entry>> Check(const KernelContext& c) {
    WEFT_RETURN_IF_ERROR(CheckId(c.input(3)));
    if (c.input(2).rank() == 0) return InvalidArgument("grad must not be a scalar");
    if (c.input(0).num_elements() == 0) return std::vector<Entry>();
    if (c.input(1).num_elements() == 0) {
      return InvalidArgument("batch_index is empty while the tensor isn't.");
    }
    return EntriesOf(c.input(1), c.input(0).dim(0));
  }

  NamedResource<Exchange> resource_;
};

Status UnbatchGradient(GradientContext& c) {
  c.set_input(0, c.Op("UnbatchGrad", {c.input(0), c.input(1), c.gradient(), c.input(2)},
                      {{"shared_name", absl::StrCat("unbatch_gradient_", c.node().name())}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Unbatch")
                    .Doc("The rows of a batch that are this call's own.\n"
                         "The call that has the batch leaves the others theirs, by `batch_index` "
                         "and `id` of Batch. DeadlineExceeded if they do not come in time.")
                    .Input("batched_tensor: T")
                    .Input("batch_index: int64")
                    .Input("id: int64")
                    .Output("unbatched_tensor: T")
                    .Attr("timeout_micros: int")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Attr("T: type")
                    .Shape(shapes::Unknown)
                    .Gradient(UnbatchGradient)
                    .Kernel(MakeKernel<UnbatchKernel>()));
  catalogue.Add(OpSpec("UnbatchGrad")
                    .Doc("The gradient of a batch: those of all calls, for the one that has the "
                         "batch, and no rows for the others.")
                    .Input("original_input: T")
                    .Input("batch_index: int64")
                    .Input("grad: T")
                    .Input("id: int64")
                    .Output("batched_grad: T")
                    .Attr("container: string = ''")
                    .Attr("shared_name: string = ''")
                    .Attr("T: type")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<UnbatchGradKernel>()));
}

}  // namespace weft::ops::state::unbatch
