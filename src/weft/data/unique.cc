// SPDX-License-Identifier: Apache-2.0
// Each element once.
#include <set>
#include <utility>

#include "weft/data/transform.h"

namespace weft::data::unique {
namespace {

class Unique final : public TransformDataset {
 public:
  explicit Unique(const DatasetRef& input) : TransformDataset(input) {}
  int64_t Cardinality() const override { return kUnknown; }
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return Started<Iterator>(this, context);
  }

 private:
  class Iterator final : public TransformIterator<Unique> {
   public:
    using TransformIterator::TransformIterator;
    StatusOr<bool> Next(Element* element) override {
      while (true) {
        WEFT_ASSIGN_OR_RETURN(const bool found, input()->Next(element));
        if (!found) return false;
        if (seen_.insert(BytesOf((*element)[0])).second) return true;
      }
    }

   private:
    // Says of two tensors of one type whether they are equal.
    static std::string BytesOf(const Tensor& tensor) {
      std::string bytes = tensor.shape().ToString();
      if (tensor.dtype() == DType::kString) {
        for (const std::string& text : tensor.span<std::string>()) {
          absl::StrAppend(&bytes, text.size(), ":", text);
        }
      } else {
        bytes.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.size_bytes());
      }
      return bytes;
    }
    std::set<std::string> seen_;
  };
};

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DatasetRef input, DatasetInput(c));
  const ElementSpec& spec = input->spec();
  if (spec.types.size() != 1 || !(spec.types[0] == DType::kString || IsPlain(spec.types[0]))) {
    return InvalidArgument(
        "UniqueDataset only supports inputs with a single component of a type "
        "whose elements can be compared");
  }
  return DatasetRef(MakeRef<Unique>(input));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue, {.name = "UniqueDataset",
                         .doc = "A dataset of the elements, each once.",
                         .inputs = {"input_dataset: variant"},
                         .attrs = {"output_types: list(type) >= 1",
                                   "output_shapes: list(shape) >= 1", "metadata: string = ''"},
                         .make = Make});
  AddDataset(catalogue,
             {.name = "ExperimentalUniqueDataset",
              .doc = "UniqueDataset under its first name.",
              .inputs = {"input_dataset: variant"},
              .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
              .make = Make});
}

}  // namespace weft::data::unique
