// SPDX-License-Identifier: Apache-2.0
// For: a function called for each number of a range on what the call before gave.
#include <atomic>
#include <memory>

#include "base/ref.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::control::for_loop {
namespace {

// The calls of one step, one after another. A call that ends before it returns goes on in the same
// loop, one that ends elsewhere goes on there: the stack stays flat.
class Loop final : public RefCounted {
 public:
  Loop(KernelContext* context, const FunctionRef* body, int64_t start, int64_t limit, int64_t delta,
       OpKernel::Done done)
      : context_(*context),
        body_(*body),
        at_(start),
        limit_(limit),
        delta_(delta),
        done_(std::move(done)) {
    for (int i = 3; i < context->num_inputs(); ++i) values_.push_back(context->input(i));
  }

  void Advance() {
    const Ref<Loop> self(this);
    do {
      if (status_.ok() && context_.cancellation().IsCancelled()) {
        status_ = context_.cancellation().status();
      }
      if (!status_.ok() || IsOver()) {
        Finish();
        return;
      }
      std::vector<Tensor> arguments{Tensor::Scalar(static_cast<int32_t>(at_))};
      for (Tensor& value : values_) arguments.push_back(std::move(value));
      at_ += delta_;
      met_.store(false, std::memory_order_relaxed);
      context_.environment().functions->Run(
          body_, std::move(arguments), &context_.cancellation(),
          [self](StatusOr<std::vector<Tensor>> results) {
            self->TakeIn(std::move(results));
            if (self->met_.exchange(true, std::memory_order_acq_rel)) self->Advance();
          });
      // Whoever is second of "the call returned" and "the function ended" goes on.
    } while (met_.exchange(true, std::memory_order_acq_rel));
  }

 private:
  bool IsOver() const { return delta_ >= 0 ? at_ >= limit_ : at_ <= limit_; }

  void TakeIn(StatusOr<std::vector<Tensor>> results) {
    status_ = results.status();
    if (!status_.ok()) return;
    values_ = *std::move(results);
    if (static_cast<int>(values_.size()) != context_.num_outputs()) {
      status_ = InvalidArgument("For loop body returned ", values_.size(),
                                " arguments. Expected: ", context_.num_outputs());
    }
  }

  void Finish() {
    for (int i = 0; status_.ok() && i < context_.num_outputs(); ++i) {
      Tensor& value = values_[static_cast<size_t>(i)];
      if (value.dtype() == context_.output_dtype(i)) {
        context_.SetOutput(i, std::move(value));
      } else {
        status_ = InvalidArgument("Result ", i, " of function '", body_.name, "' is ",
                                  DTypeName(value.dtype()), ", expected ",
                                  DTypeName(context_.output_dtype(i)));
      }
    }
    done_(status_);
  }

  KernelContext& context_;  // lives until done_ is called
  const FunctionRef& body_;
  int64_t at_;
  const int64_t limit_;
  const int64_t delta_;
  std::vector<Tensor> values_;
  Status status_;
  OpKernel::Done done_;
  std::atomic<bool> met_{false};
};

class ForKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<ForKernel>();
    WEFT_ASSIGN_OR_RETURN(kernel->body_, c.Attr<FunctionRef>("body"));
    return kernel;
  }

  void ComputeAsync(KernelContext& c, Done done) override {
    const Status status = Check(c);
    if (!status.ok()) {
      done(status);
      return;
    }
    MakeRef<Loop>(&c, &body_, c.input(0).scalar<int32_t>(), c.input(1).scalar<int32_t>(),
                  c.input(2).scalar<int32_t>(), std::move(done))
        ->Advance();
  }

 private:
  static Status Check(KernelContext& c) {
    if (c.environment().functions == nullptr) {
      return FailedPrecondition("For cannot be called where there is no graph");
    }
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).rank() == 0) continue;
      return InvalidArgument(c.call().schema().inputs[static_cast<size_t>(i)].name,
                             " must be a scalar, got shape ", c.input(i).shape().ToString());
    }
    const int32_t start = c.input(0).scalar<int32_t>(), limit = c.input(1).scalar<int32_t>(),
                  delta = c.input(2).scalar<int32_t>();
    if ((delta > 0 && start <= limit) || (delta < 0 && start >= limit) || start == limit) {
      return absl::OkStatus();
    }
    return InvalidArgument("Invalid start/limit/delta: ", start, " ", limit, " ", delta);
  }

  FunctionRef body_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("For")
                    .Doc("Calls `body` for each number from `start` on below `limit`, `delta` "
                         "apart, with the number and what the call before gave, first `input`.")
                    .Input("start: int32")
                    .HostInput("start")
                    .Input("limit: int32")
                    .HostInput("limit")
                    .Input("delta: int32")
                    .HostInput("delta")
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: list(type) >= 0")
                    .Attr("body: func")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ForKernel>()));
}

}  // namespace weft::ops::control::for_loop
