// SPDX-License-Identifier: Apache-2.0
// Datasets with the elements of their input: options, hints, checks, pauses.
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "weft/data/transform.h"

namespace weft::data::pass_through {
namespace {

class WithOptions final : public TransformDataset {
 public:
  WithOptions(const DatasetRef& input, std::string options)
      : TransformDataset(input), options_(std::move(options)) {}
  const std::string* options() const override { return &options_; }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    return input()->At(context, index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return input()->MakeIterator(context);
  }

 private:
  const std::string options_;
};

class AssertCardinality final : public TransformDataset {
 public:
  AssertCardinality(const DatasetRef& input, int64_t count)
      : TransformDataset(input), count_(count) {}
  int64_t Cardinality() const override { return count_; }
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    return input()->At(context, index);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<AssertCardinality> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
      const int64_t count = dataset().count_;
      if (found) ++seen_;
      if (!found && seen_ != count) {
        return FailedPrecondition("Input dataset was expected to contain ", Elements(count),
                                  " but contained only ", Elements(seen_), ".");
      }
      if (found && count >= 0 && seen_ > count) {
        return FailedPrecondition("Input dataset was expected to contain ", Elements(count),
                                  " but contained at least ", Elements(seen_), ".");
      }
      return found;
    }

   private:
    static std::string Elements(int64_t n) {
      if (n == kInfinite) return "an infinite number of elements";
      if (n == kUnknown) return "an unknown number of elements";
      return absl::StrCat(n, n == 1 ? " element" : " elements");
    }
    int64_t seen_ = 0;
  };

  const int64_t count_;
};

class IgnoreErrors final : public TransformDataset {
 public:
  explicit IgnoreErrors(const DatasetRef& input) : TransformDataset(input) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<IgnoreErrors> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (true) {
        WEFT_RETURN_IF_ERROR(context()->Check());
        element->clear();
        const StatusOr<bool> found = input()->Next(element);
        if (found.ok()) return found;
        if (absl::IsCancelled(found.status())) return found.status();
      }
    }
  };
};

class Sleep final : public TransformDataset {
 public:
  Sleep(const DatasetRef& input, int64_t microseconds)
      : TransformDataset(input), microseconds_(microseconds) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Sleep> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(Pause());
      return input()->Next(element);
    }

   private:
    // Until the time has passed or the iterator shall end.
    Status Pause() {
      absl::Mutex mutex;
      bool is_cancelled = false;
      Cancellation::Token token;
      const bool is_watched = context()->cancellation().Register(&token, [&](const Status&) {
        absl::MutexLock lock(&mutex);
        is_cancelled = true;
      });
      if (is_watched) {
        {
          absl::MutexLock lock(&mutex);
          mutex.AwaitWithTimeout(absl::Condition(&is_cancelled),
                                 absl::Microseconds(dataset().microseconds_));
        }
        context()->cancellation().Deregister(token);
      }
      return context()->Check();
    }
  };

  const int64_t microseconds_;
};

StatusOr<DatasetRef> Same(KernelContext& c) { return DatasetInput(c); }

StatusOr<DatasetRef> MakeOptions(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(std::string options, c.call().Attr<std::string>("serialized_options"));
  return DatasetRef(MakeRef<WithOptions>(input, std::move(options)));
}

StatusOr<DatasetRef> MakeAssertCardinality(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t count, ScalarInput<int64_t>(c, "cardinality"));
  return DatasetRef(MakeRef<AssertCardinality>(input, count));
}

StatusOr<DatasetRef> MakeIgnoreErrors(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  return DatasetRef(MakeRef<IgnoreErrors>(input));
}

StatusOr<DatasetRef> MakeSleep(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(const int64_t time, ScalarInput<int64_t>(c, "sleep_microseconds"));
  if (time < 0) return InvalidArgument("sleep_microseconds must be at least 0, got ", time);
  return DatasetRef(MakeRef<Sleep>(input, time));
}

StatusOr<DatasetRef> MakeThreads(KernelContext& c, absl::string_view name, int64_t least) {
  WEFT_ASSIGN_OR_RETURN(const int64_t threads, ScalarInput<int64_t>(c, name));
  if (threads < least) {
    return InvalidArgument("`", name, "` must be ", least == 0 ? ">= 0" : "greater than zero.");
  }
  return DatasetInput(c);
}

StatusOr<DatasetRef> MakePrivatePool(KernelContext& c) { return MakeThreads(c, "num_threads", 0); }
StatusOr<DatasetRef> MakeMaxIntraOp(KernelContext& c) {
  return MakeThreads(c, "max_intra_op_parallelism", 0);
}

class HandleKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, Tensor::Scalar(ResourceHandle{.device = c.device().name(),
                                                 .container = c.default_container(),
                                                 .name = c.name(),
                                                 .type_name = c.call().op(),
                                                 .object = nullptr}));
    return absl::OkStatus();
  }
};

class EmptySummaryKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, Tensor::Scalar(std::string()));
    return absl::OkStatus();
  }
};

class NothingKernel final : public OpKernel {
 public:
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// A dataset with the elements of its input, whatever else it is given.
DatasetOpSpec OfInput(std::string name, std::string doc, std::vector<std::string> more_inputs = {},
                      DatasetMaker make = Same) {
  std::vector<std::string> inputs = {"input_dataset: variant"};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  return {.name = std::move(name),
          .doc = std::move(doc),
          .inputs = std::move(inputs),
          .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
          .make = make};
}

void RegisterOptions(Catalogue& catalogue) {
  const auto add = [&](DatasetOpSpec spec, std::vector<std::string> before,
                       std::vector<std::string> behind) {
    spec.attrs.insert(spec.attrs.begin(), before.begin(), before.end());
    spec.attrs.insert(spec.attrs.end(), behind.begin(), behind.end());
    AddDataset(catalogue, std::move(spec));
  };
  add(OfInput("OptionsDataset", "The dataset itself, with options for who reads it.", {},
              MakeOptions),
      {"serialized_options: string"}, {"metadata: string = ''"});
  add(OfInput("ModelDataset", "The dataset itself: how much runs at once is not tuned by a model."),
      {"algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0"}, {});
  const std::string not_rewritten = "The dataset itself: it is not rewritten.";
  add(OfInput("OptimizeDataset", not_rewritten, {"optimizations: string"}), {},
      {"optimization_configs: list(string) = []"});
  add(OfInput("OptimizeDatasetV2", not_rewritten,
              {"optimizations_enabled: string", "optimizations_disabled: string",
               "optimizations_default: string"}),
      {}, {"optimization_configs: list(string) = []"});
  add(OfInput("FinalizeDataset", "The dataset itself."), {"has_captured_ref: bool = false"}, {});
  AddDataset(catalogue, OfInput("RewriteDataset", not_rewritten, {"rewrite_name: string"}));
}

void RegisterMarks(Catalogue& catalogue) {
  AddUnderBothNames(catalogue, OfInput("NonSerializableDataset", "The dataset itself."));
  AddUnderBothNames(
      catalogue, OfInput("AssertNextDataset", "The dataset itself: nothing rewrites what follows.",
                         {"transformations: string"}));
  AddDataset(catalogue,
             OfInput("AssertPrevDataset", "The dataset itself: nothing rewrites what it reads.",
                     {"transformations: string"}));
}

void RegisterThreads(Catalogue& catalogue) {
  const std::string shared = "The dataset itself: all share the threads of the device.";
  DatasetOpSpec pool = OfInput("ThreadPoolDataset", shared, {"thread_pool: resource"});
  pool.is_stateful = true;
  AddUnderBothNames(catalogue, std::move(pool));
  AddUnderBothNames(catalogue, OfInput("PrivateThreadPoolDataset", shared, {"num_threads: int64"},
                                       MakePrivatePool));
  AddUnderBothNames(catalogue, OfInput("MaxIntraOpParallelismDataset", shared,
                                       {"max_intra_op_parallelism: int64"}, MakeMaxIntraOp));
  for (const char* name : {"ThreadPoolHandle", "ExperimentalThreadPoolHandle"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("A handle of threads, which nobody uses: all share those of the device.")
                      .Output("handle: resource")
                      .Attr("num_threads: int")
                      .Attr("max_intra_op_parallelism: int = 1")
                      .Attr("display_name: string")
                      .Attr("container: string = ''")
                      .Attr("shared_name: string = ''")
                      .Stateful()
                      .Shape(shapes::Scalar)
                      .NoGradient()
                      .Kernel(MakeKernel<HandleKernel>()));
  }
}

void RegisterStatistics(Catalogue& catalogue) {
  const std::string none_kept = "The dataset itself: no statistics are kept.";
  AddUnderBothNames(catalogue, OfInput("BytesProducedStatsDataset", none_kept, {"tag: string"}));
  AddUnderBothNames(catalogue, OfInput("LatencyStatsDataset", none_kept, {"tag: string"}));
  DatasetOpSpec aggregator =
      OfInput("SetStatsAggregatorDataset", none_kept,
              {"stats_aggregator: resource", "tag: string", "counter_prefix: string"});
  aggregator.is_stateful = true;
  AddUnderBothNames(catalogue, std::move(aggregator));
  for (const char* name :
       {"StatsAggregatorHandle", "StatsAggregatorHandleV2", "ExperimentalStatsAggregatorHandle"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("A handle of statistics, which nobody keeps.")
                      .Output("handle: resource")
                      .Attr("container: string = ''")
                      .Attr("shared_name: string = ''")
                      .Stateful()
                      .Shape(shapes::Scalar)
                      .NoGradient()
                      .Kernel(MakeKernel<HandleKernel>()));
  }
}

void RegisterSummaries(Catalogue& catalogue) {
  for (const char* name : {"StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary"}) {
    catalogue.Add(OpSpec(name)
                      .Doc("A summary without values: no statistics are kept.")
                      .Input("iterator: resource")
                      .Output("summary: string")
                      .Stateful()
                      .Shape(shapes::Scalar)
                      .NoGradient()
                      .Kernel(MakeKernel<EmptySummaryKernel>()));
  }
  catalogue.Add(OpSpec("StatsAggregatorSetSummaryWriter")
                    .Doc("Does nothing: no statistics are kept.")
                    .Input("stats_aggregator: resource")
                    .Input("summary: resource")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<NothingKernel>()));
  catalogue.Add(OpSpec("DummyIterationCounter")
                    .Doc("A handle that leads nowhere, for datasets that want a counter.")
                    .Output("handle: resource")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<HandleKernel>()));
}

void RegisterChecks(Catalogue& catalogue) {
  AddDataset(catalogue, OfInput("AssertCardinalityDataset",
                                "The dataset itself, whose end fails if it does not have "
                                "`cardinality` elements.",
                                {"cardinality: int64"}, MakeAssertCardinality));
  DatasetOpSpec ignore =
      OfInput("IgnoreErrorsDataset", "A dataset of the elements whose making does not fail.", {},
              MakeIgnoreErrors);
  ignore.attrs.push_back("log_warning: bool = false");
  AddUnderBothNames(catalogue, std::move(ignore));
  AddUnderBothNames(catalogue,
                    OfInput("SleepDataset", "The dataset itself, with a pause before each element.",
                            {"sleep_microseconds: int64"}, MakeSleep));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterOptions(catalogue);
  RegisterMarks(catalogue);
  RegisterThreads(catalogue);
  RegisterStatistics(catalogue);
  RegisterSummaries(catalogue);
  RegisterChecks(catalogue);
}

}  // namespace weft::data::pass_through
