// SPDX-License-Identifier: Apache-2.0
// Barriers as ops: tuples whose components come one by one, by key.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/barrier_kernel.h"
#include "weft/ops/state/queue_tuples_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"

namespace weft::ops::state::barrier {
namespace {

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    BarrierOptions options;
    options.name = c.AttrOr<std::string>("shared_name", "");
    if (options.name.empty()) options.name = c.name();
    WEFT_ASSIGN_OR_RETURN(options.types, c.Attr<AttrValue::TypeList>("component_types"));
    WEFT_ASSIGN_OR_RETURN(options.shapes, c.Attr<AttrValue::ShapeList>("shapes"));
    if (!options.shapes.empty() && options.shapes.size() != options.types.size()) {
      return InvalidArgument("All of the component shapes must be specified: got ",
                             options.shapes.size(), " for ", options.types.size(), " components");
    }
    if (c.AttrOr<int64_t>("capacity", -1) != -1) {
      return InvalidArgument(
          "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a "
          "queue to enforce a limited capacity.");
    }
    return std::make_unique<CreateKernel>(c, std::move(options));
  }
  CreateKernel(KernelConstruction& c, BarrierOptions options)
      : options_(std::move(options)), output_(c, "tensorflow::barrier::Barrier") {}

  Status Compute(KernelContext& c) override {
    return output_.Give(
        c, [&]() -> StatusOr<Ref<Barrier>> { return MakeRef<Barrier>(options_); },
        [&](const Barrier& found) {
          if (found.options().types == options_.types &&
              found.options().shapes == options_.shapes) {
            return absl::OkStatus();
          }
          return InvalidArgument("Shared barrier '", options_.name,
                                 "' has other components than requested");
        });
  }

 private:
  const BarrierOptions options_;
  HandleOutput<Barrier> output_;
};

class InsertManyKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(int64_t component, c.Attr<int64_t>("component_index"));
    return std::make_unique<InsertManyKernel>(static_cast<int>(component));
  }
  explicit InsertManyKernel(int component) : component_(component) {}
  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Barrier>> barrier = ResourceOfInput<Barrier>(c);
    if (!barrier.ok()) return done(barrier.status());
    (*barrier)->InsertMany(Caller::Of(c), c.input(1), component_, c.input(2), std::move(done));
  }

 private:
  const int component_;
};

class TakeManyKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    if (c.AttrOr<int64_t>("timeout_ms", -1) != -1)
      return InvalidArgument("Timeout not supported yet.");
    return std::make_unique<TakeManyKernel>(c.AttrOr("allow_small_batch", false));
  }
  explicit TakeManyKernel(bool allow_small_batch) : allow_small_batch_(allow_small_batch) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Barrier>> barrier = ResourceOfInput<Barrier>(c);
    if (!barrier.ok()) return done(barrier.status());
    const Tensor& count = c.input(1);
    if (!count.shape().IsScalar()) return done(InvalidArgument("num_elements must be a scalar."));
    if (count.scalar<int32_t>() < 0) {
      return done(InvalidArgument("num_elements must be >= 0, got ", count.scalar<int32_t>()));
    }
    const std::vector<DType>& types = (*barrier)->options().types;
    bool fits = c.num_outputs() == static_cast<int>(types.size()) + 2;
    for (size_t i = 0; fits && i < types.size(); ++i) {
      fits = c.call().output_type(static_cast<int>(i) + 2).dtype == types[i];
    }
    if (!fits)
      return done(
          InvalidArgument("Barrier '", (*barrier)->options().name, "' has other component types"));
    (*barrier)->TakeMany(
        Caller::Of(c), count.scalar<int32_t>(), allow_small_batch_,
        [&c, held = *barrier, done = std::move(done)](StatusOr<Queue::Elements> tuples) mutable {
          if (!tuples.ok()) return done(tuples.status());
          done(Give(c, held->tuple_options(), *tuples));
        });
  }

 private:
  static Status Give(KernelContext& c, const QueueOptions& options, const Queue::Elements& tuples) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(i, BatchShape(options, tuples, i)));
      JoinBatch(tuples, i, output);
    }
    return absl::OkStatus();
  }
  const bool allow_small_batch_;
};

class CloseKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<CloseKernel>(c.AttrOr("cancel_pending_enqueues", false));
  }
  explicit CloseKernel(bool cancel) : cancel_(cancel) {}
  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<Barrier>> barrier = ResourceOfInput<Barrier>(c);
    if (!barrier.ok()) return done(barrier.status());
    (*barrier)->CloseBarrier(Caller::Of(c), cancel_, std::move(done));
  }

 private:
  const bool cancel_;
};

template <bool is_ready>
class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Barrier> barrier, ResourceOfInput<Barrier>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int32_t>() =
        static_cast<int32_t>(is_ready ? barrier->ready_size() : barrier->incomplete_size());
    return absl::OkStatus();
  }
};

Status NamesShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  const auto add = [&](OpSpec& spec) { catalogue.Add(std::move(spec.NoGradient())); };
  add(OpSpec("Barrier")
          .Doc("Gathers the components of tuples by key and gives out complete tuples, in the "
               "order in which "
               "their keys came. Without a limit.")
          .Output("handle: Ref(string)")
          .Attr("component_types: list(type) >= 1")
          .Attr("shapes: list(shape) >= 0 = []")
          .Attr("capacity: int = -1")
          .Attr("container: string = ''")
          .Attr("shared_name: string = ''")
          .Stateful()
          .Shape(NamesShape)
          .Kernel(MakeKernel<CreateKernel>(), KernelCost::kInline));
  add(OpSpec("BarrierInsertMany")
          .Doc("Gives one component of each key's tuple.\nInvalidArgument if a key has it already; "
               "Cancelled "
               "for new keys of a closed barrier.")
          .Input("handle: Ref(string)")
          .Input("keys: string")
          .Input("values: T")
          .Attr("T: type")
          .Attr("component_index: int")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<InsertManyKernel>(), KernelCost::kInline));
  add(OpSpec("BarrierTakeMany")
          .Doc("Takes complete tuples out, stacked, with their keys and when these came; waits "
               "until there are as "
               "many, or takes what a closed barrier has if a small batch is allowed.\nOutOfRange "
               "when there will "
               "never be enough.")
          .Input("handle: Ref(string)")
          .Input("num_elements: int32")
          .Output("indices: int64")
          .Output("keys: string")
          .Output("values: component_types")
          .Attr("component_types: list(type) >= 1")
          .Attr("allow_small_batch: bool = false")
          .Attr("wait_for_incomplete: bool = false")
          .Attr("timeout_ms: int = -1")
          .Shape(shapes::Unknown)
          .Kernel(MakeKernel<TakeManyKernel>(), KernelCost::kInline));
  add(OpSpec("BarrierClose")
          .Doc("No new keys come from now on; with cancel_pending_enqueues incomplete ones are "
               "dropped.")
          .Input("handle: Ref(string)")
          .Attr("cancel_pending_enqueues: bool = false")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<CloseKernel>(), KernelCost::kInline));
  add(OpSpec("BarrierReadySize")
          .Doc("How many tuples are complete.")
          .Input("handle: Ref(string)")
          .Output("size: int32")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<SizeKernel<true>>(), KernelCost::kInline));
  add(OpSpec("BarrierIncompleteSize")
          .Doc("How many keys wait for components.")
          .Input("handle: Ref(string)")
          .Output("size: int32")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<SizeKernel<false>>(), KernelCost::kInline));
}

}  // namespace weft::ops::state::barrier
