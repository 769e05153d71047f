// SPDX-License-Identifier: Apache-2.0
// Bases of datasets that read another one.
#pragma once

#include <memory>
#include <utility>

#include "weft/data/dataset_op.h"

namespace weft::data {

// Reads `input`; the elements are as `spec` says, or those of the input.
class TransformDataset : public Dataset {
 public:
  TransformDataset(ElementSpec spec, DatasetRef input)
      : Dataset(std::move(spec)), input_(std::move(input)) {}
  explicit TransformDataset(const DatasetRef& input) : Dataset(input->spec()), input_(input) {}
  int64_t Cardinality() const override { return input_->Cardinality(); }
  const Dataset* input() const override { return input_.get(); }

 private:
  const DatasetRef input_;
};

// An iterator over what an iterator of D's input gives. `Start` makes the latter.
template <typename D>
class TransformIterator : public DatasetIterator {
 public:
  TransformIterator(const D* dataset, ContextPtr context)
      : dataset_(dataset), context_(std::move(context)) {}
  Status Start() {
    WEFT_ASSIGN_OR_RETURN(input_, dataset_->input()->MakeIterator(context_));
    return absl::OkStatus();
  }

 protected:
  const D& dataset() const { return *dataset_; }
  const ContextPtr& context() const { return context_; }
  IteratorPtr& input() { return input_; }

 private:
  const Ref<const D> dataset_;
  const ContextPtr context_;
  IteratorPtr input_;
};

// Makes and starts an iterator of kind I.
template <typename I, typename D>
StatusOr<IteratorPtr> Started(const D* dataset, const ContextPtr& context) {
  auto iterator = std::make_unique<I>(dataset, context);
  WEFT_RETURN_IF_ERROR(iterator->Start());
  return IteratorPtr(std::move(iterator));
}

}  // namespace weft::data
