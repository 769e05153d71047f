// SPDX-License-Identifier: Apache-2.0
// A function of each element, one at a time or several at once.
#include <utility>

#include "weft/data/calls_ahead.h"
#include "weft/data/map_dataset.h"

namespace weft::data {
namespace {

class OneByOne final : public TransformIterator<MapDataset> {
 public:
  using TransformIterator::TransformIterator;
  StatusOr<bool> Next(Element* element) override {
    WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
    if (!found) return false;
    StatusOr<Element> mapped = context()->CallAndWait(dataset().function(), std::move(*element));
    if (!mapped.ok()) return dataset().Ended(mapped.status());
    *element = *std::move(mapped);
    return true;
  }
};

class SeveralAtOnce final : public TransformIterator<MapDataset> {
 public:
  SeveralAtOnce(const MapDataset* dataset, ContextPtr context)
      : TransformIterator(dataset, context),
        calls_(context, dataset->num_parallel(),
               [function = &dataset->function()](IteratorContext& calls, Element argument,
                                                 FunctionRunner::Done done) {
                 calls.Call(*function, std::move(argument), std::move(done));
               }) {}
  StatusOr<bool> Next(Element* element) override {
    const StatusOr<bool> found =
        calls_.Take([this](Element* argument) { return input()->Next(argument); }, element);
    return found.ok() ? found : dataset().Ended(found.status());
  }

 private:
  CallsAhead calls_;  // ends before dataset and input go
};

}  // namespace

StatusOr<bool> MapDataset::Ended(const Status& status) const {
  if (status.code() != absl::StatusCode::kOutOfRange) return status;
  if (!keeps_cardinality_) return false;
  return InvalidArgument("Function invocation produced OutOfRangeError: ", status.message());
}

StatusOr<IteratorPtr> MapDataset::MakeIterator(const ContextPtr& context) const {
  if (num_parallel_ > 1) return Started<SeveralAtOnce>(this, context);
  return Started<OneByOne>(this, context);
}

StatusOr<Element> MapDataset::At(const ContextPtr& context, int64_t index) const {
  WEFT_ASSIGN_OR_RETURN(Element element, input()->At(context, index));
  return context->CallAndWait(function_, std::move(element));
}

namespace map {
namespace {

StatusOr<DatasetRef> MakeWith(KernelContext& c, int64_t num_parallel) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function, FunctionInput(c, "f", "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(
      MakeRef<MapDataset>(std::move(spec), std::move(input), std::move(function), num_parallel,
                          FindAttrOr<bool>(c.call().attrs(), "preserve_cardinality", false)));
}

StatusOr<DatasetRef> Make(KernelContext& c) { return MakeWith(c, 1); }

StatusOr<DatasetRef> MakeParallel(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int32_t asked, ScalarInput<int32_t>(c, "num_parallel_calls"));
  WEFT_ASSIGN_OR_RETURN(const int64_t calls, ParallelCalls(asked));
  return MakeWith(c, calls);
}

StatusOr<DatasetRef> MakeParallelV2(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t asked, ScalarInput<int64_t>(c, "num_parallel_calls"));
  WEFT_ASSIGN_OR_RETURN(const int64_t calls, ParallelCalls(asked));
  return MakeWith(c, calls);
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "MapDataset",
              .doc = "A dataset of `f` of each element of `input_dataset`.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "use_inter_op_parallelism: bool = true",
                        "preserve_cardinality: bool = false", "force_synchronous: bool = false",
                        "metadata: string = ''"},
              .make = Make});
  AddDataset(catalogue,
             {.name = "ExperimentalMapDataset",
              .doc = "MapDataset under its first name.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "use_inter_op_parallelism: bool = true",
                        "preserve_cardinality: bool = false", "force_synchronous: bool = false"},
              .make = Make});
  AddDataset(catalogue,
             {.name = "ParallelMapDataset",
              .doc = "A dataset of `f` of each element, up to `num_parallel_calls` of them "
                     "computed at once; in order.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "num_parallel_calls: int32"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "use_inter_op_parallelism: bool = true",
                        "sloppy: bool = false", "preserve_cardinality: bool = false",
                        "metadata: string = ''"},
              .make = MakeParallel});
  AddDataset(catalogue,
             {.name = "ParallelMapDatasetV2",
              .doc = "A dataset of `f` of each element, up to `num_parallel_calls` of them "
                     "computed at once, -1 for as many as there are cores; in order.",
              .inputs = {"input_dataset: variant", "other_arguments: Targuments",
                         "num_parallel_calls: int64"},
              .attrs = {"f: func", "Targuments: list(type) >= 0", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1", "use_inter_op_parallelism: bool = true",
                        "deterministic: string = 'default'", "preserve_cardinality: bool = false",
                        "use_unbounded_threadpool: bool = false", "metadata: string = ''"},
              .make = MakeParallelV2});
}

}  // namespace map
}  // namespace weft::data
