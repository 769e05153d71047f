// SPDX-License-Identifier: Apache-2.0
// Rows of several steps, put together: for what is cheaper for many than for each.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/call_batcher_kernel.h"

namespace weft::ops::state::batch {
namespace {

template <bool has_function>
class BatchKernel final : public AsyncOpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(BatchLimits limits, BatchLimits::Of(c, has_function));
    auto kernel = std::make_unique<BatchKernel>(c, std::move(limits));
    WEFT_ASSIGN_OR_RETURN(const auto types,
                          c.Attr<AttrValue::TypeList>(has_function ? "Tin" : "T"));
    kernel->batched_ = static_cast<int>(types.size());
    if constexpr (has_function) {
      WEFT_ASSIGN_OR_RETURN(kernel->function_, c.Attr<FunctionRef>("f"));
    }
    return kernel;
  }
  BatchKernel(const KernelConstruction& c, BatchLimits limits)
      : resource_(c),
        limits_(std::move(limits)),
        queue_(c.AttrOr<std::string>("batching_queue", "")) {}

  void ComputeAsync(KernelContext& c, Done done) override {
    if (has_function && c.environment().functions == nullptr) {
      return done(FailedPrecondition("BatchFunction cannot be called where there is no graph"));
    }
    const StatusOr<Ref<CallBatcher>> batcher =
        resource_.Get(c, [&]() -> StatusOr<Ref<CallBatcher>> {
          return MakeRef<CallBatcher>(resource_.name(), limits_);
        });
    if (!batcher.ok()) return done(batcher.status());
    (*batcher)->Join(c, has_function ? &function_ : nullptr, batched_, queue_, std::move(done));
  }

 private:
  NamedResource<CallBatcher> resource_;
  const BatchLimits limits_;
  const std::string queue_;
  FunctionRef function_;
  int batched_ = 0;
};

// The gradient's rows go back to the steps that they came from.
Status BatchGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t timeout, c.Attr<int64_t>("grad_timeout_micros"));
  const int count = c.node().num_inputs();
  for (int i = 0; i < count; ++i) {
    if (!c.gradient(i)) continue;
    const std::string name = absl::StrCat("batch_gradient_", c.node().name(), "_", i);
    c.set_input(i, c.Op("Unbatch", {c.gradient(i), c.output(count), c.output(count + 1)},
                        {{"timeout_micros", timeout}, {"shared_name", name}}));
  }
  return absl::OkStatus();
}

void AddCommonAttrs(OpSpec* spec) {
  spec->Attr("num_batch_threads: int").Attr("max_batch_size: int");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec batch("Batch");
  batch.Doc(
      "Puts the rows of calls of several steps together.\n"
      "Waits until there are `max_batch_size` rows or `batch_timeout_micros` have passed. The last "
      "call gets all rows and, in `batch_index`, for each call its `id` and its first and "
      "past-last "
      "row; the others get no rows. InvalidArgument for inputs of unequal numbers of rows or more "
      "than `max_batch_size`.");
  batch.Input("in_tensors: T").Output("batched_tensors: T");
  batch.Output("batch_index: int64").Output("id: int64");
  AddCommonAttrs(&batch);
  batch.Attr("max_enqueued_batches: int = 10").Attr("batch_timeout_micros: int");
  batch.Attr("allowed_batch_sizes: list(int) = []").Attr("grad_timeout_micros: int");
  batch.Attr("container: string = ''").Attr("shared_name: string = ''");
  batch.Attr("batching_queue: string = ''").Attr("T: list(type) >= 1");
  batch.DistributedCommunication().Shape(shapes::Unknown).Gradient(BatchGradient);
  catalogue.Add(std::move(batch.Kernel(MakeKernel<BatchKernel<false>>())));

  OpSpec function("BatchFunction");
  function.Doc(
      "Calls `f` once on the rows of calls of several steps; each gets the rows that are its own.\n"
      "Waits until there are `max_batch_size` rows or `batch_timeout_micros` have passed; batches "
      "are padded to one of `allowed_batch_sizes`. Priorities are not told apart. InvalidArgument "
      "for inputs of unequal numbers of rows or more than `max_batch_size`; FailedPrecondition if "
      "`f` gives another number of rows.");
  function.Input("in_tensors: Tin").Input("captured_tensors: Tcaptured");
  function.Output("out_tensors: Tout").Attr("f: func");
  AddCommonAttrs(&function);
  function.Attr("batch_timeout_micros: int").Attr("max_enqueued_batches: int = 10");
  function.Attr("allowed_batch_sizes: list(int) = []");
  function.Attr("container: string = ''").Attr("shared_name: string = ''");
  function.Attr("batching_queue: string = ''");
  function.Attr("low_priority_max_batch_size: int = 0");
  function.Attr("low_priority_batch_timeout_micros: int = 0");
  function.Attr("low_priority_allowed_batch_sizes: list(int) = []");
  function.Attr("low_priority_max_enqueued_batches: int = 0");
  function.Attr(
      "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
      "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', "
      "'priority_merge'} = 'low_priority_padding_with_max_batch_size'");
  function.Attr(
      "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'} = "
      "'PAD_UP'");
  function.Attr("Tin: list(type) >= 1").Attr("Tcaptured: list(type) >= 0");
  function.Attr("Tout: list(type) >= 1").Attr("enable_large_batch_splitting: bool = false");
  function.DistributedCommunication().Shape(shapes::Unknown).NoGradient();
  catalogue.Add(std::move(function.Kernel(MakeKernel<BatchKernel<true>>())));
}

}  // namespace weft::ops::state::batch
