// SPDX-License-Identifier: Apache-2.0
// How large the batches of a pipeline are, by the ops that it is made of.
#include <optional>
#include <utility>

#include "absl/strings/match.h"

#include "weft/data/dataset_op.h"

namespace weft::data::batch_size {
namespace {

constexpr int64_t kNoBatches = -1;

// A dataset's name without what tells apart its versions.
absl::string_view PlainName(absl::string_view op) {
  if (absl::StartsWith(op, "Experimental")) op.remove_prefix(12);
  const size_t version = op.rfind('V');
  if (version != absl::string_view::npos && version + 2 == op.size()) op.remove_suffix(2);
  return op;
}

bool IsOneOf(absl::string_view name, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Which input of a batching op is the size.
std::optional<size_t> SizeInput(const DatasetOrigin& origin, absl::string_view name) {
  if (IsOneOf(name, {"BatchDataset", "ParallelBatchDataset", "PaddedBatchDataset"})) return 1;
  if (name != "MapAndBatchDataset") return std::nullopt;
  return 1 + FindAttrOr<AttrValue::TypeList>(origin.attrs, "Targuments", {}).size();
}

int64_t SizeOf(const Dataset& dataset, int depth) {
  constexpr int kDeepest = 1000;
  const DatasetOrigin* const origin = dataset.origin();
  if (origin == nullptr || depth == kDeepest) return kNoBatches;
  const absl::string_view name = PlainName(origin->op);
  if (const std::optional<size_t> at = SizeInput(*origin, name)) {
    if (*at >= origin->inputs.size()) return kNoBatches;
    const Tensor& size = origin->inputs[*at];
    return size.dtype() == DType::kInt64 && size.num_elements() == 1 ? size.scalar<int64_t>()
                                                                     : kNoBatches;
  }
  const bool is_joined = IsOneOf(name, {"ZipDataset", "ConcatenateDataset"});
  const bool passes_on = IsOneOf(name, {"AssertCardinalityDataset",
                                        "AssertNextDataset",
                                        "BytesProducedStatsDataset",
                                        "CacheDataset",
                                        "FilterDataset",
                                        "LatencyStatsDataset",
                                        "MapDataset",
                                        "ModelDataset",
                                        "NonSerializableDataset",
                                        "OptimizeDataset",
                                        "OptionsDataset",
                                        "MaxIntraOpParallelismDataset",
                                        "ParallelMapDataset",
                                        "PrefetchDataset",
                                        "PrivateThreadPoolDataset",
                                        "RepeatDataset",
                                        "ShardDataset",
                                        "SetStatsAggregatorDataset",
                                        "ShuffleDataset",
                                        "SkipDataset",
                                        "ShuffleAndRepeatDataset",
                                        "SleepDataset",
                                        "TakeDataset",
                                        "ThreadPoolDataset"});
  if (!is_joined && !passes_on) return kNoBatches;
  std::optional<int64_t> common;
  for (const Tensor& input : origin->inputs) {
    const StatusOr<DatasetRef> above =
        input.dtype() == DType::kVariant ? DatasetOf(input) : StatusOr<DatasetRef>(DatasetRef());
    if (!above.ok() || !*above) continue;
    const int64_t size = SizeOf(**above, depth + 1);
    if (common && *common != size) return kNoBatches;
    common = size;
  }
  return common.value_or(kNoBatches);
}

class BatchSizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(c.input(0)));
    c.SetOutput(0, Tensor::Scalar(SizeOf(*dataset, 0)));
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ComputeBatchSize")
                    .Doc("How many elements the batches of a dataset hold, but maybe the last one; "
                         "-1 where it has none or that is not known.")
                    .Input("input_dataset: variant")
                    .Output("batch_size: int64")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<BatchSizeKernel>()));
}

}  // namespace weft::data::batch_size
