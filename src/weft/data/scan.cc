// SPDX-License-Identifier: Apache-2.0
// Functions with a state that goes from element to element, and groups of elements by a key.
#include <deque>
#include <map>
#include <utility>

#include "weft/data/held_dataset.h"

namespace weft::data::scan {
namespace {

class Scan final : public TransformDataset {
 public:
  Scan(ElementSpec spec, DatasetRef input, Element state, CapturedFunction function,
       bool keeps_cardinality)
      : TransformDataset(std::move(spec), std::move(input)),
        state_(std::move(state)),
        function_(std::move(function)),
        keeps_cardinality_(keeps_cardinality) {}
  int64_t Cardinality() const override {
    return keeps_cardinality_ ? input()->Cardinality() : kUnknown;
  }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Scan> {
   public:
    Iterator(const Scan* dataset, ContextPtr context)
        : TransformIterator(dataset, std::move(context)), state_(dataset->state_) {}
    StatusOr<bool> Next(Element* element) override {
      WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
      if (!found) return false;
      Element arguments = state_;
      for (Tensor& tensor : *element) arguments.push_back(std::move(tensor));
      StatusOr<Element> results = context()->CallAndWait(dataset().function_, std::move(arguments));
      if (!results.ok()) {
        if (!absl::IsOutOfRange(results.status())) return results.status();
        if (!dataset().keeps_cardinality_) return false;
        return InvalidArgument("Function invocation produced OutOfRangeError: ",
                               results.status().message());
      }
      if (results->size() != state_.size() + dataset().spec().types.size()) {
        return InvalidArgument("Expected ", state_.size() + dataset().spec().types.size(),
                               " results of the scan function, got ", results->size());
      }
      const auto middle = results->begin() + static_cast<std::ptrdiff_t>(state_.size());
      for (size_t i = 0; i < state_.size(); ++i) {
        if ((*results)[i].dtype() != state_[i].dtype()) {
          return InvalidArgument("Got wrong type for scan_func return value ", i, " (expected ",
                                 DTypeName(state_[i].dtype()), ", got ",
                                 DTypeName((*results)[i].dtype()), ").");
        }
      }
      state_.assign(results->begin(), middle);
      element->assign(middle, results->end());
      return true;
    }

   private:
    Element state_;
  };

  const Element state_;
  const CapturedFunction function_;
  const bool keeps_cardinality_;
};

// As many elements of one key as its window has become a dataset, of which a function makes another
// one, whose elements come out.
class GroupByWindow final : public TransformDataset {
 public:
  GroupByWindow(ElementSpec spec, DatasetRef input, CapturedFunction key, CapturedFunction reduce,
                CapturedFunction size)
      : TransformDataset(std::move(spec), std::move(input)),
        key_(std::move(key)),
        reduce_(std::move(reduce)),
        size_(std::move(size)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<GroupByWindow> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (true) {
        if (group_ != nullptr) {
          WEFT_ASSIGN_OR_RETURN(const bool found, group_->Next(element));
          if (found) return true;
          group_.reset();
        }
        if (input() != nullptr) {
          Element next;
          WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&next));
          if (found) {
            WEFT_RETURN_IF_ERROR(Put(std::move(next)));
            continue;
          }
          input().reset();
        }
        if (windows_.empty()) return false;
        const int64_t key = windows_.begin()->first;
        WEFT_RETURN_IF_ERROR(Begin(key));
      }
    }

   private:
    struct OneWindow {
      int64_t size = 0;
      std::vector<Element> elements;
    };

    Status Put(Element element) {
      WEFT_ASSIGN_OR_RETURN(const int64_t key,
                            context()->CallForScalar<int64_t>(dataset().key_, element));
      auto found = windows_.find(key);
      if (found == windows_.end()) {
        WEFT_ASSIGN_OR_RETURN(const int64_t size, context()->CallForScalar<int64_t>(
                                                      dataset().size_, {Tensor::Scalar(key)}));
        if (size <= 0) {
          return InvalidArgument("Window size must be greater than zero, but got ", size, ".");
        }
        found = windows_.emplace(key, OneWindow{size, {}}).first;
      }
      OneWindow& window = found->second;
      window.elements.push_back(std::move(element));
      return static_cast<int64_t>(window.elements.size()) == window.size ? Begin(key)
                                                                         : absl::OkStatus();
    }

    // The window of `key` is complete.
    Status Begin(int64_t key) {
      const auto found = windows_.find(key);
      DatasetRef held =
          MakeRef<HeldDataset>(dataset().input()->spec(), std::move(found->second.elements));
      windows_.erase(found);
      WEFT_ASSIGN_OR_RETURN(
          const Element results,
          context()->CallAndWait(dataset().reduce_, {Tensor::Scalar(key), VariantOf(held)}));
      if (results.size() != 1) {
        return InvalidArgument("`reduce_func` must return a single scalar of dtype DT_VARIANT.");
      }
      WEFT_ASSIGN_OR_RETURN(const DatasetRef group, DatasetOf(results[0]));
      WEFT_RETURN_IF_ERROR(CheckSpec(dataset().spec(), group->spec()));
      WEFT_ASSIGN_OR_RETURN(group_, group->MakeIterator(context()));
      return absl::OkStatus();
    }

    std::map<int64_t, OneWindow> windows_;
    IteratorPtr group_;
  };

  const CapturedFunction key_;
  const CapturedFunction reduce_;
  const CapturedFunction size_;
};

// All elements of a key become one.
class GroupByReducer final : public TransformDataset {
 public:
  struct Functions {
    CapturedFunction key;
    CapturedFunction init;
    CapturedFunction reduce;
    CapturedFunction finalize;
  };
  GroupByReducer(ElementSpec spec, DatasetRef input, Functions functions)
      : TransformDataset(std::move(spec), std::move(input)), functions_(std::move(functions)) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<GroupByReducer> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      const Functions& functions = dataset().functions_;
      while (input() != nullptr) {
        Element next;
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(&next));
        if (!found) {
          input().reset();
          break;
        }
        WEFT_ASSIGN_OR_RETURN(const int64_t key,
                              context()->CallForScalar<int64_t>(functions.key, next));
        auto state = states_.find(key);
        if (state == states_.end()) {
          WEFT_ASSIGN_OR_RETURN(Element initial,
                                context()->CallAndWait(functions.init, {Tensor::Scalar(key)}));
          state = states_.emplace(key, std::move(initial)).first;
        }
        Element arguments = state->second;
        for (Tensor& tensor : next) arguments.push_back(std::move(tensor));
        WEFT_ASSIGN_OR_RETURN(state->second,
                              context()->CallAndWait(functions.reduce, std::move(arguments)));
      }
      if (states_.empty()) return false;
      Element last = std::move(states_.begin()->second);
      states_.erase(states_.begin());
      WEFT_ASSIGN_OR_RETURN(*element, context()->CallAndWait(functions.finalize, std::move(last)));
      return true;
    }

   private:
    std::map<int64_t, Element> states_;
  };

  const Functions functions_;
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(Element state, ListInput(c, "initial_state"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction function, FunctionInput(c, "f", "other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(
      MakeRef<Scan>(std::move(spec), std::move(input), std::move(state), std::move(function),
                    FindAttrOr<bool>(c.call().attrs(), "preserve_cardinality", false)));
}

StatusOr<DatasetRef> MakeWindows(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction key,
                        FunctionInput(c, "key_func", "key_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction reduce,
                        FunctionInput(c, "reduce_func", "reduce_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(CapturedFunction size,
                        FunctionInput(c, "window_size_func", "window_size_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(MakeRef<GroupByWindow>(std::move(spec), std::move(input), std::move(key),
                                           std::move(reduce), std::move(size)));
}

StatusOr<DatasetRef> MakeReducer(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(DatasetRef input, DatasetInput(c));
  GroupByReducer::Functions functions;
  WEFT_ASSIGN_OR_RETURN(functions.key, FunctionInput(c, "key_func", "key_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(functions.init, FunctionInput(c, "init_func", "init_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(functions.reduce,
                        FunctionInput(c, "reduce_func", "reduce_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(functions.finalize,
                        FunctionInput(c, "finalize_func", "finalize_func_other_arguments"));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  return DatasetRef(
      MakeRef<GroupByReducer>(std::move(spec), std::move(input), std::move(functions)));
}

void RegisterScan(Catalogue& catalogue) {
  AddUnderBothNames(
      catalogue,
      {.name = "ScanDataset",
       .doc = "A dataset of what `f` gives for a state and each element, besides the next state.",
       .inputs = {"input_dataset: variant", "initial_state: Tstate", "other_arguments: Targuments"},
       .attrs = {"f: func", "Tstate: list(type) >= 1", "Targuments: list(type) >= 0",
                 "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1",
                 "preserve_cardinality: bool = false"},
       .make = Make},
      {"use_default_device: bool = true", "metadata: string = ''"});
}

void RegisterGroups(Catalogue& catalogue) {
  AddUnderBothNames(
      catalogue,
      {.name = "GroupByWindowDataset",
       .doc = "A dataset of the elements of `reduce_func` of each window of elements of one key.",
       .inputs = {"input_dataset: variant", "key_func_other_arguments: Tkey_func_other_arguments",
                  "reduce_func_other_arguments: Treduce_func_other_arguments",
                  "window_size_func_other_arguments: Twindow_size_func_other_arguments"},
       .attrs = {"key_func: func", "reduce_func: func", "window_size_func: func",
                 "Tkey_func_other_arguments: list(type) >= 0",
                 "Treduce_func_other_arguments: list(type) >= 0",
                 "Twindow_size_func_other_arguments: list(type) >= 0",
                 "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
       .make = MakeWindows},
      {"metadata: string = ''"});
  AddUnderBothNames(
      catalogue,
      {.name = "GroupByReducerDataset",
       .doc =
           "A dataset of one element for each key: what `reduce_func` made of all of its elements.",
       .inputs = {"input_dataset: variant", "key_func_other_arguments: Tkey_func_other_arguments",
                  "init_func_other_arguments: Tinit_func_other_arguments",
                  "reduce_func_other_arguments: Treduce_func_other_arguments",
                  "finalize_func_other_arguments: Tfinalize_func_other_arguments"},
       .attrs = {"key_func: func", "init_func: func", "reduce_func: func", "finalize_func: func",
                 "Tkey_func_other_arguments: list(type) >= 0",
                 "Tinit_func_other_arguments: list(type) >= 0",
                 "Treduce_func_other_arguments: list(type) >= 0",
                 "Tfinalize_func_other_arguments: list(type) >= 0", "output_types: list(type) >= 1",
                 "output_shapes: list(shape) >= 1"},
       .is_stateful = true,
       .make = MakeReducer},
      {});
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterScan(catalogue);
  RegisterGroups(catalogue);
}

}  // namespace weft::data::scan
