// SPDX-License-Identifier: Apache-2.0
// Lookup tables whose entries a dataset gives.
#include <utility>

#include "weft/data/batch_rows.h"
#include "weft/data/dataset_op.h"
#include "weft/data/run_apart.h"
#include "weft/ops/state/table_output_kernel.h"

namespace weft::ops::pipeline::table {
namespace {

class InitializeKernel final : public weft::data::ApartKernel<InitializeKernel> {
 public:
  static Status Work(KernelContext& c) {
    WEFT_ASSIGN_OR_RETURN(const Ref<state::LookupTable> table,
                          state::ResourceOfInput<state::LookupTable>(c));
    WEFT_ASSIGN_OR_RETURN(const weft::data::DatasetRef dataset, weft::data::DatasetOf(c.input(1)));
    const auto& types = dataset->spec().types;
    if (types.size() != 2) {
      return InvalidArgument("Dataset should have two output types only, got ", types.size());
    }
    if (types[0] != table->options().key) {
      return InvalidArgument("Key dtype expected: ", DTypeName(table->options().key),
                             " but obtained: ", DTypeName(types[0]), " from the dataset");
    }
    if (types[1] != table->options().value) {
      return InvalidArgument("Value dtype expected: ", DTypeName(table->options().value),
                             " but obtained: ", DTypeName(types[1]), " from the dataset");
    }
    WEFT_ASSIGN_OR_RETURN(const weft::data::IteratorPtr iterator,
                          dataset->MakeIterator(weft::data::IteratorContext::OfStep(c)));
    std::vector<weft::data::Element> entries;
    while (true) {
      weft::data::Element entry;
      WEFT_ASSIGN_OR_RETURN(const bool found, iterator->Next(&entry));
      if (!found) break;
      entries.push_back(std::move(entry));
    }
    if (entries.empty()) {
      WEFT_ASSIGN_OR_RETURN(const Tensor keys, Tensor::Zeros(types[0], Shape{0}));
      WEFT_ASSIGN_OR_RETURN(const Tensor values, Tensor::Zeros(types[1], Shape{0}));
      return table->Initialize(keys, values);
    }
    WEFT_ASSIGN_OR_RETURN(const weft::data::Element columns, weft::data::StackElements(entries));
    // Elements of the dataset may be batches of entries.
    WEFT_ASSIGN_OR_RETURN(const Tensor keys, columns[0].Reshaped(Shape{columns[0].num_elements()}));
    WEFT_ASSIGN_OR_RETURN(const Tensor values,
                          columns[1].Reshaped(Shape{columns[1].num_elements()}));
    return table->Initialize(keys, values);
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("InitializeTableFromDataset")
                    .Doc("Gives a table the entries of a dataset of keys and values.")
                    .Input("table_handle: resource")
                    .Input("dataset: variant")
                    .Stateful()
                    .Shape(shapes::NoOutputs)
                    .NoGradient()
                    .Kernel(MakeKernel<InitializeKernel>()));
}

}  // namespace weft::ops::pipeline::table
