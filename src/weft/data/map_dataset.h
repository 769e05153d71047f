// SPDX-License-Identifier: Apache-2.0
// A function of each element of a dataset.
#pragma once

#include <utility>

#include "weft/data/transform.h"

namespace weft::data {

class MapDataset final : public TransformDataset {
 public:
  MapDataset(ElementSpec spec, DatasetRef input, CapturedFunction function, int64_t num_parallel,
             bool keeps_cardinality)
      : TransformDataset(std::move(spec), std::move(input)),
        function_(std::move(function)),
        num_parallel_(num_parallel),
        keeps_cardinality_(keeps_cardinality) {}
  const CapturedFunction& function() const { return function_; }
  // What an error of the function is to who asks for elements: OutOfRange ends them, unless there
  // must be as many as the input has.
  StatusOr<bool> Ended(const Status& status) const;
  int64_t num_parallel() const { return num_parallel_; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override;
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override;
  bool HasRandomAccess() const override { return input()->HasRandomAccess(); }
  int64_t Cardinality() const override {
    return keeps_cardinality_ ? input()->Cardinality() : kUnknown;
  }

 private:
  const CapturedFunction function_;
  const int64_t num_parallel_;
  const bool keeps_cardinality_;
};

}  // namespace weft::data
