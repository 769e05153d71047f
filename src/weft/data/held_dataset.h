// SPDX-License-Identifier: Apache-2.0
// A dataset of elements that are there, for datasets whose elements are datasets.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weft/data/transform.h"

namespace weft::data {

class HeldDataset final : public Dataset {
 public:
  HeldDataset(ElementSpec spec, std::vector<Element> elements)
      : Dataset(std::move(spec)), elements_(std::move(elements)) {}
  int64_t Cardinality() const override { return static_cast<int64_t>(elements_.size()); }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const HeldDataset>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const HeldDataset> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_RETURN_IF_ERROR(context_->Check());
      if (next_ == dataset_->elements_.size()) return false;
      *element = dataset_->elements_[next_++];
      return true;
    }

   private:
    const Ref<const HeldDataset> dataset_;
    const ContextPtr context_;
    size_t next_ = 0;
  };

  const std::vector<Element> elements_;
};

// A scalar variant for each component of `spec`: a dataset of that component of each element.
inline Element DatasetsOfComponents(const ElementSpec& spec, const std::vector<Element>& elements) {
  Element datasets;
  for (size_t i = 0; i < spec.types.size(); ++i) {
    std::vector<Element> column;
    column.reserve(elements.size());
    for (const Element& element : elements) column.push_back({element[i]});
    datasets.push_back(VariantOf(MakeRef<HeldDataset>(
        ElementSpec{{spec.types[i]}, {i < spec.shapes.size() ? spec.shapes[i] : PartialShape()}},
        std::move(column))));
  }
  return datasets;
}

}  // namespace weft::data
