// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/call_batcher_kernel.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "weft/tensor/rows.h"

namespace weft::ops::state {

StatusOr<BatchLimits> BatchLimits::Of(const KernelConstruction& c, bool has_function) {
  BatchLimits limits;
  WEFT_ASSIGN_OR_RETURN(limits.at_once, c.Attr<int64_t>("num_batch_threads"));
  WEFT_ASSIGN_OR_RETURN(limits.call_rows, c.Attr<int64_t>("max_batch_size"));
  WEFT_ASSIGN_OR_RETURN(const int64_t micros, c.Attr<int64_t>("batch_timeout_micros"));
  limits.waiting_batches = c.AttrOr<int64_t>("max_enqueued_batches", 10);
  limits.allowed = c.AttrOr<std::vector<int64_t>>("allowed_batch_sizes", {});
  limits.splits_calls = has_function && c.AttrOr<bool>("enable_large_batch_splitting", false);
  if (limits.at_once < 1 || limits.call_rows < 1 || micros < 0 || limits.waiting_batches < 1) {
    return InvalidArgument(
        "num_batch_threads, max_batch_size and max_enqueued_batches must be positive and "
        "batch_timeout_micros at least 0; got ",
        limits.at_once, ", ", limits.call_rows, ", ", limits.waiting_batches, " and ", micros);
  }
  limits.patience = absl::Microseconds(micros);
  limits.batch_rows = limits.call_rows;
  for (size_t i = 0; i < limits.allowed.size(); ++i) {
    if (limits.allowed[i] > (i == 0 ? 0 : limits.allowed[i - 1])) continue;
    return InvalidArgument("allowed_batch_sizes entries must be monotonically increasing");
  }
  if (limits.allowed.empty()) return limits;
  const int64_t last = limits.allowed.back();
  if (limits.splits_calls ? last > limits.call_rows : last != limits.call_rows) {
    return InvalidArgument("final entry in allowed_batch_sizes must ",
                           limits.splits_calls ? "be at most" : "equal", " max_batch_size");
  }
  limits.batch_rows = last;
  return limits;
}

int64_t NextCallId() {
  static std::atomic<uint64_t> next{(uint64_t{std::random_device{}()} << 30)};
  return static_cast<int64_t>(next.fetch_add(1) & (~uint64_t{0} >> 1));
}

int64_t CallBatcher::PaddedSize(int64_t rows) const {
  if (rows == 0) return 0;  // There is no row to repeat.
  const auto found = std::lower_bound(limits_.allowed.begin(), limits_.allowed.end(), rows);
  return found == limits_.allowed.end() ? rows : *found;
}

void CallBatcher::Join(KernelContext& c, const FunctionRef* function, int batched,
                       const std::string& queue, OpKernel::Done done) {
  StatusOr<Ref<Call>> call = MakeCall(c, batched);
  if (!call.ok()) return done(call.status());
  (*call)->function = function;
  const Status entered = Enter(*call, queue, &done);
  if (!entered.ok()) return done(entered);
  RunReady();
}

StatusOr<Ref<CallBatcher::Call>> CallBatcher::MakeCall(KernelContext& c, int batched) {
  auto call = MakeRef<Call>();
  call->home = Ref<CallBatcher>(this);
  call->context = &c;
  call->id = NextCallId();
  for (int i = 0; i < c.num_inputs(); ++i) {
    (i < batched ? call->inputs : call->captured).push_back(c.input(i));
  }
  for (const Tensor& input : call->inputs) {
    if (input.rank() == 0) {
      return InvalidArgument("Batching input tensors must have at least one dimension");
    }
    if (input.dim(0) != call->inputs[0].dim(0)) {
      return InvalidArgument(
          "Batching input tensors supplied in a given op invocation must have equal "
          "0th-dimension size");
    }
  }
  const int64_t rows = call->inputs[0].dim(0);
  if (rows > limits_.call_rows) {
    return InvalidArgument("Task size ", rows, " is larger than maximum input batch size ",
                           limits_.call_rows);
  }
  return call;
}

// Takes `done` to call it later, or refuses.
Status CallBatcher::Enter(const Ref<Call>& call, const std::string& queue, OpKernel::Done* done) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_) return Cancelled("Batches '", name_, "' were removed");
  if (static_cast<int64_t>(ready_.size()) >= limits_.waiting_batches) {
    return Unavailable(
        "The batch scheduling queue to which this task was submitted is full; "
        "max_enqueued_batches: ",
        limits_.waiting_batches);
  }
  const bool waits = call->waiting.Begin(
      Caller::Of(*call->context), absl::StrCat("more calls for a batch of '", name_, "'"),
      [self = Ref<CallBatcher>(this), call](const Status& reason) { self->Abandon(call, reason); });
  if (!waits) return Cancelled("Batches '", name_, "': the step was cancelled");
  call->done = std::move(*done);
  AddPieces(call, queue);
  return absl::OkStatus();
}

void CallBatcher::AddPieces(const Ref<Call>& call, const std::string& queue) {
  const int64_t rows = call->inputs[0].dim(0);
  int64_t begin = 0;
  do {
    const auto [at, is_new] = open_.try_emplace(queue);
    Batch& batch = at->second;
    const int64_t room = limits_.batch_rows - batch.rows;
    if (!is_new && (limits_.splits_calls ? room == 0 : rows > room)) {
      ready_.push_back(std::move(batch));
      open_.erase(at);
      continue;
    }
    if (is_new) {
      batch.id = next_batch_++;
      timers_.Schedule(limits_.patience, [this, queue, id = batch.id] { Expire(queue, id); });
    }
    const int64_t end = std::min(rows, begin + room);
    batch.pieces.push_back({call, call->missing++, begin, end});
    batch.rows += end - begin;
    begin = end;
    if (batch.rows == limits_.batch_rows) {
      ready_.push_back(std::move(batch));
      open_.erase(at);
    }
  } while (begin < rows);
  call->results.resize(call->missing);
}

// Batches that wait hold no call that is over: its device may be gone.
void CallBatcher::Forget(const Call* call) {
  const auto drop = [&](Batch* batch) {
    std::erase_if(batch->pieces, [&](const Piece& piece) {
      if (piece.call.get() != call) return false;
      batch->rows -= piece.end - piece.begin;
      return true;
    });
    return batch->pieces.empty();
  };
  for (auto at = open_.begin(); at != open_.end();) {
    at = drop(&at->second) ? open_.erase(at) : std::next(at);
  }
  std::erase_if(ready_, [&](Batch& batch) { return drop(&batch); });
}

void CallBatcher::Abandon(const Ref<Call>& call, const Status& reason) {
  {
    absl::MutexLock lock(&mutex_);
    // The function that runs in this call's step ends with it.
    if (call->is_over || call->leads > 0) return;
    call->is_over = true;
    Forget(call.get());
  }
  call->waiting.Detach();
  call->done(reason);
}

// On the timers' thread, which must not let go of the last reference to this.
void CallBatcher::Expire(const std::string& queue, uint64_t batch) {
  Ref<CallBatcher> self;
  ThreadPool* threads = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(queue);
    if (found == open_.end() || found->second.id != batch) return;
    const Call& call = *found->second.pieces[0].call;
    self = call.home;
    threads = &call.context->device().threads();
    ready_.push_back(std::move(found->second));
    open_.erase(found);
  }
  threads->Schedule([self = std::move(self)] { self->RunReady(); });
}

void CallBatcher::RunReady() {
  while (true) {
    Batch batch;
    {
      absl::MutexLock lock(&mutex_);
      if (ready_.empty() || running_ >= limits_.at_once) return;
      batch = std::move(ready_.front());
      ready_.pop_front();
      ++running_;
      ++batch.pieces.back().call->leads;
    }
    Run(std::move(batch));
  }
}

void CallBatcher::Run(Batch batch) {
  Call& last = *batch.pieces.back().call;
  const int64_t padded = PaddedSize(batch.rows);
  StatusOr<std::vector<Tensor>> inputs = JoinInputs(batch, padded);
  if (!inputs.ok()) return Finish(batch, inputs.status());
  if (last.function == nullptr) return Finish(batch, GiveAllToLast(batch, *std::move(inputs)));
  inputs->insert(inputs->end(), last.captured.begin(), last.captured.end());
  KernelContext& c = *last.context;
  const FunctionRef& function = *last.function;
  c.environment().functions->Run(function, *std::move(inputs), &c.cancellation(),
                                 [self = Ref<CallBatcher>(this), batch = std::move(batch),
                                  padded](StatusOr<std::vector<Tensor>> outputs) {
                                   if (!outputs.ok()) return self->Finish(batch, outputs.status());
                                   self->Finish(batch, Distribute(batch, padded, *outputs));
                                 });
}

StatusOr<std::vector<Tensor>> CallBatcher::JoinInputs(const Batch& batch, int64_t padded) const {
  const size_t count = batch.pieces[0].call->inputs.size();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < count; ++i) {
    std::vector<Tensor> parts;
    for (const Piece& piece : batch.pieces) {
      if (piece.call->inputs.size() != count) {
        return InvalidArgument("Batching inputs must have equal number of edges");
      }
      parts.push_back(piece.call->inputs[i].SliceRows(piece.begin, piece.end));
    }
    WEFT_ASSIGN_OR_RETURN(inputs.emplace_back(), JoinRows(parts, padded - batch.rows));
  }
  return inputs;
}

StatusOr<std::vector<std::vector<Tensor>>> CallBatcher::Distribute(
    const Batch& batch, int64_t padded, const std::vector<Tensor>& outputs) {
  std::vector<std::vector<Tensor>> results(batch.pieces.size());
  for (const Tensor& output : outputs) {
    if (output.rank() == 0) {
      return FailedPrecondition("Batched output tensor has 0 dimensions");
    }
    if (output.dim(0) != padded) {
      return FailedPrecondition(
          "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
          "of the input tensors: ",
          output.dim(0), " and ", padded);
    }
    int64_t begin = 0;
    for (size_t p = 0; p < batch.pieces.size(); ++p) {
      const int64_t end = begin + batch.pieces[p].end - batch.pieces[p].begin;
      WEFT_ASSIGN_OR_RETURN(results[p].emplace_back(), CopyRows(output, begin, end));
      begin = end;
    }
  }
  return results;
}

StatusOr<std::vector<std::vector<Tensor>>> CallBatcher::GiveAllToLast(const Batch& batch,
                                                                      std::vector<Tensor> joined) {
  std::vector<std::vector<Tensor>> results(batch.pieces.size());
  const auto count = static_cast<int64_t>(batch.pieces.size());
  WEFT_ASSIGN_OR_RETURN(Tensor index, Tensor::Allocate(DType::kInt64, Shape{count, 3}));
  int64_t* at = index.data<int64_t>();
  int64_t begin = 0;
  for (size_t p = 0; p < batch.pieces.size(); ++p) {
    const Piece& piece = batch.pieces[p];
    *at++ = piece.call->id;
    *at++ = begin;
    begin += piece.end - piece.begin;
    *at++ = begin;
    if (p + 1 == batch.pieces.size()) break;
    for (const Tensor& tensor : joined) {
      WEFT_ASSIGN_OR_RETURN(results[p].emplace_back(), CopyRows(tensor, 0, 0));
    }
    WEFT_ASSIGN_OR_RETURN(results[p].emplace_back(), Tensor::Allocate(DType::kInt64, Shape{0, 3}));
    results[p].push_back(Tensor::Scalar(piece.call->id));
  }
  joined.push_back(std::move(index));
  joined.push_back(Tensor::Scalar(batch.pieces.back().call->id));
  results.back() = std::move(joined);
  return results;
}

void CallBatcher::Finish(const Batch& batch, StatusOr<std::vector<std::vector<Tensor>>> results) {
  ThreadPool& threads = batch.pieces.back().call->context->device().threads();
  std::vector<Ended> ended;
  {
    absl::MutexLock lock(&mutex_);
    --running_;
    --batch.pieces.back().call->leads;
    for (size_t p = 0; p < batch.pieces.size(); ++p) {
      const Piece& piece = batch.pieces[p];
      Call& call = *piece.call;
      if (call.is_over) continue;
      if (results.ok()) {
        call.results[piece.index] = std::move((*results)[p]);
        --call.missing;
      } else {
        call.failure.Update(results.status());
      }
      // While another batch runs in its step it must not end.
      if (call.failure.ok() ? call.missing > 0 : call.leads > 0) continue;
      call.is_over = true;
      Forget(&call);
      ended.push_back({piece.call, call.failure});
    }
  }
  // Not here: the batches that wait may be many, and each may end before it returns.
  threads.Schedule([self = Ref<CallBatcher>(this)] { self->RunReady(); });
  Tell(std::move(ended));
}

void CallBatcher::Tell(std::vector<Ended> ended) {
  for (Ended& one : ended) {
    Call& call = *one.call;
    const size_t outputs = one.status.ok() ? call.results[0].size() : 0;
    if (one.status.ok() && static_cast<int>(outputs) != call.context->num_outputs()) {
      one.status = InvalidArgument("The function gives ", outputs, " values, expected ",
                                   call.context->num_outputs());
    }
    for (size_t o = 0; o < outputs && one.status.ok(); ++o) {
      std::vector<Tensor> parts;
      for (const std::vector<Tensor>& result : call.results) parts.push_back(result[o]);
      StatusOr<Tensor> whole = parts.size() == 1 ? std::move(parts[0]) : JoinRows(parts);
      one.status = whole.status();
      if (one.status.ok()) call.context->SetOutput(static_cast<int>(o), *std::move(whole));
    }
    call.waiting.Detach();
    call.done(one.status);
  }
}

void CallBatcher::Close() {
  std::vector<Ended> ended;
  {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
    const Status why = Cancelled("Batches '", name_, "' were removed");
    const auto end = [&](const Batch& batch) {
      for (const Piece& piece : batch.pieces) {
        if (piece.call->is_over || piece.call->leads > 0) continue;
        piece.call->is_over = true;
        ended.push_back({piece.call, why});
      }
    };
    for (const auto& [queue, batch] : open_) end(batch);
    for (const Batch& batch : ready_) end(batch);
    for (const Ended& one : ended) Forget(one.call.get());
  }
  Tell(std::move(ended));
}

}  // namespace weft::ops::state
