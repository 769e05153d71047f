// SPDX-License-Identifier: Apache-2.0
// Several datasets as one: side by side, one after another, chosen by another.
#include <algorithm>
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::zip {
namespace {

// The shapes that all of the datasets have, component by component. InvalidArgument for other
// types.
StatusOr<ElementSpec> CommonSpec(const std::vector<DatasetRef>& inputs) {
  ElementSpec spec = inputs[0]->spec();
  for (const DatasetRef& input : inputs) {
    if (input->spec().types != spec.types) {
      return InvalidArgument("All datasets must have the same types of components");
    }
    for (size_t i = 0; i < spec.shapes.size() && i < input->spec().shapes.size(); ++i) {
      const PartialShape& other = input->spec().shapes[i];
      PartialShape& shape = spec.shapes[i];
      if (!shape.known_rank() || !other.known_rank() || shape.rank() != other.rank()) {
        shape = PartialShape();
        continue;
      }
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape.dim(d) != other.dim(d)) shape.SetDim(d, -1);
      }
    }
  }
  return spec;
}

StatusOr<std::vector<IteratorPtr>> StartAll(const std::vector<DatasetRef>& inputs,
                                            const ContextPtr& context) {
  std::vector<IteratorPtr> iterators;
  for (const DatasetRef& input : inputs) {
    WEFT_ASSIGN_OR_RETURN(iterators.emplace_back(), input->MakeIterator(context));
  }
  return iterators;
}

class Zip final : public Dataset {
 public:
  Zip(ElementSpec spec, std::vector<DatasetRef> inputs)
      : Dataset(std::move(spec)), inputs_(std::move(inputs)) {}
  int64_t Cardinality() const override {
    int64_t least = kInfinite;
    for (const DatasetRef& input : inputs_) {
      const int64_t n = input->Cardinality();
      if (n == kUnknown) return kUnknown;
      if (n != kInfinite) least = least == kInfinite ? n : std::min(least, n);
    }
    return least;
  }
  bool HasRandomAccess() const override {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [](const DatasetRef& input) { return input->HasRandomAccess(); });
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    Element all;
    for (const DatasetRef& input : inputs_) {
      WEFT_ASSIGN_OR_RETURN(Element part, input->At(context, index));
      for (Tensor& tensor : part) all.push_back(std::move(tensor));
    }
    return all;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(auto iterators, StartAll(inputs_, context));
    return std::make_unique<Iterator>(std::move(iterators));
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(std::vector<IteratorPtr> inputs) : inputs_(std::move(inputs)) {}
    StatusOr<bool> Next(Element* element) override {
      element->clear();
      Status failed;
      bool all = !inputs_.empty();
      for (IteratorPtr& input : inputs_) {
        Element part;
        const StatusOr<bool> found = input->Next(&part);
        // The others go on as well, so that they stay in step, and come to their own ends.
        if (!found.ok()) {
          if (failed.ok()) failed = found.status();
          continue;
        }
        if (!*found) {
          all = false;
          continue;
        }
        for (Tensor& tensor : part) element->push_back(std::move(tensor));
      }
      if (!all) {
        inputs_.clear();
        return false;
      }
      WEFT_RETURN_IF_ERROR(failed);
      return true;
    }

   private:
    std::vector<IteratorPtr> inputs_;
  };

  const std::vector<DatasetRef> inputs_;
};

class Concatenate final : public Dataset {
 public:
  Concatenate(ElementSpec spec, std::vector<DatasetRef> inputs)
      : Dataset(std::move(spec)), inputs_(std::move(inputs)) {}
  int64_t Cardinality() const override {
    return AddCardinalities(inputs_[0]->Cardinality(), inputs_[1]->Cardinality());
  }
  bool HasRandomAccess() const override {
    return inputs_[0]->HasRandomAccess() && inputs_[1]->HasRandomAccess() &&
           inputs_[0]->Cardinality() >= 0;
  }
  StatusOr<Element> At(const ContextPtr& context, int64_t index) const override {
    const int64_t first = inputs_[0]->Cardinality();
    if (first < 0) return Dataset::At(context, index);
    if (index < first) return inputs_[0]->At(context, index);
    return inputs_[1]->At(context, index - first);
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(IteratorPtr first, inputs_[0]->MakeIterator(context));
    return std::make_unique<Iterator>(std::move(first), inputs_[1], context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(IteratorPtr first, DatasetRef second, ContextPtr context)
        : now_(std::move(first)), second_(std::move(second)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      while (now_ != nullptr) {
        WEFT_ASSIGN_OR_RETURN(const bool found, now_->Next(element));
        if (found) return true;
        now_.reset();
        if (second_) {
          WEFT_ASSIGN_OR_RETURN(now_, second_->MakeIterator(context_));
          second_.reset();
        }
      }
      return false;
    }

   private:
    IteratorPtr now_;
    DatasetRef second_;
    const ContextPtr context_;
  };

  const std::vector<DatasetRef> inputs_;
};

// The first dataset says which of the others is next.
class Directed final : public Dataset {
 public:
  Directed(ElementSpec spec, std::vector<DatasetRef> inputs, bool stops)
      : Dataset(std::move(spec)), inputs_(std::move(inputs)), stops_(stops) {}
  int64_t Cardinality() const override {
    if (stops_) return kUnknown;
    int64_t sum = 0;
    for (size_t i = 1; i < inputs_.size(); ++i) {
      sum = AddCardinalities(sum, inputs_[i]->Cardinality());
    }
    return sum;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    WEFT_ASSIGN_OR_RETURN(auto iterators, StartAll(inputs_, context));
    return std::make_unique<Iterator>(std::move(iterators), stops_);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(std::vector<IteratorPtr> inputs, bool stops)
        : inputs_(std::move(inputs)), left_(inputs_.size() - 1), stops_(stops) {}
    StatusOr<bool> Next(Element* element) override {
      while (!inputs_.empty()) {
        Element selected;
        WEFT_ASSIGN_OR_RETURN(const bool has_choice, inputs_[0]->Next(&selected));
        if (!has_choice) break;
        if (selected.size() != 1 || selected[0].dtype() != DType::kInt64 ||
            selected[0].num_elements() != 1) {
          return InvalidArgument("The selector dataset must give scalars of int64");
        }
        const int64_t chosen = *selected[0].data<int64_t>();
        if (chosen < 0 || chosen >= static_cast<int64_t>(inputs_.size()) - 1) {
          return InvalidArgument("Selector index out of range: ", chosen,
                                 " >= ", inputs_.size() - 1);
        }
        IteratorPtr& input = inputs_[static_cast<size_t>(chosen) + 1];
        if (input == nullptr) continue;
        WEFT_ASSIGN_OR_RETURN(const bool found, input->Next(element));
        if (found) return true;
        input.reset();
        if (stops_ || --left_ == 0) break;
      }
      inputs_.clear();
      return false;
    }

   private:
    std::vector<IteratorPtr> inputs_;
    size_t left_;
    const bool stops_;
  };

  const std::vector<DatasetRef> inputs_;
  const bool stops_;
};

StatusOr<DatasetRef> MakeZip(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(std::vector<DatasetRef> inputs, DatasetListInput(c, "input_datasets"));
  ElementSpec spec;
  for (const DatasetRef& input : inputs) {
    const ElementSpec& part = input->spec();
    spec.types.insert(spec.types.end(), part.types.begin(), part.types.end());
    spec.shapes.insert(spec.shapes.end(), part.shapes.begin(), part.shapes.end());
  }
  return DatasetRef(MakeRef<Zip>(std::move(spec), std::move(inputs)));
}

StatusOr<DatasetRef> MakeConcatenate(KernelContext& c) {
  std::vector<DatasetRef> inputs(2);
  WEFT_ASSIGN_OR_RETURN(inputs[0], DatasetInput(c, "input_dataset"));
  WEFT_ASSIGN_OR_RETURN(inputs[1], DatasetInput(c, "another_dataset"));
  if (inputs[0]->spec().types != inputs[1]->spec().types) {
    return InvalidArgument("input dataset and another dataset have different output_types");
  }
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, CommonSpec(inputs));
  return DatasetRef(MakeRef<Concatenate>(std::move(spec), std::move(inputs)));
}

StatusOr<DatasetRef> MakeDirected(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef selector, DatasetInput(c, "selector_input_dataset"));
  WEFT_ASSIGN_OR_RETURN(std::vector<DatasetRef> inputs, DatasetListInput(c, "data_input_datasets"));
  const ElementSpec& choice = selector->spec();
  if (choice.types.size() != 1 || choice.types[0] != DType::kInt64) {
    return InvalidArgument("The selector dataset must have one component of int64");
  }
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, CommonSpec(inputs));
  inputs.insert(inputs.begin(), selector);
  return DatasetRef(
      MakeRef<Directed>(std::move(spec), std::move(inputs),
                        FindAttrOr<bool>(c.call().attrs(), "stop_on_empty_dataset", false)));
}

// All of them give the same elements.
StatusOr<DatasetRef> MakeFirst(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<DatasetRef> inputs,
                        DatasetListInput(c, "input_datasets"));
  return inputs[0];
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             {.name = "ZipDataset",
              .doc = "A dataset whose elements have the components of one element of each of "
                     "`input_datasets`.",
              .inputs = {"input_datasets: N * variant"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "N: int >= 1", "metadata: string = ''"},
              .make = MakeZip});
  AddDataset(
      catalogue,
      {.name = "ConcatenateDataset",
       .doc = "A dataset of the elements of `input_dataset` and then those of `another_dataset`.",
       .inputs = {"input_dataset: variant", "another_dataset: variant"},
       .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "metadata: string = ''"},
       .make = MakeConcatenate});
  AddDataset(catalogue,
             {.name = "DirectedInterleaveDataset",
              .doc = "A dataset whose next element comes from the one of `data_input_datasets` "
                     "that the next element of `selector_input_dataset` names.",
              .inputs = {"selector_input_dataset: variant", "data_input_datasets: N * variant"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                        "N: int >= 1", "stop_on_empty_dataset: bool = false"},
              .make = MakeDirected});
  AddDataset(
      catalogue,
      {.name = "ExperimentalDirectedInterleaveDataset",
       .doc = "DirectedInterleaveDataset under its first name.",
       .inputs = {"selector_input_dataset: variant", "data_input_datasets: N * variant"},
       .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1", "N: int >= 1"},
       .make = MakeDirected});
  AddDataset(catalogue,
             {.name = "ChooseFastestDataset",
              .doc = "The first of `input_datasets`, which all have the same elements.",
              .inputs = {"input_datasets: N * variant"},
              .attrs = {"N: int >= 2", "num_experiments: int", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1"},
              .make = MakeFirst});
  AddDataset(catalogue,
             {.name = "ExperimentalChooseFastestDataset",
              .doc = "ChooseFastestDataset under its first name.",
              .inputs = {"input_datasets: N * variant"},
              .attrs = {"N: int >= 2", "num_experiments: int", "output_types: list(type) >= 1",
                        "output_shapes: list(shape) >= 1"},
              .make = MakeFirst});
}

}  // namespace weft::data::zip
