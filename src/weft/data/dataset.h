// SPDX-License-Identifier: Apache-2.0
// What a dataset is, and what gives its elements one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "weft/graph/attr_value.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft {
class FunctionLibrary;
}

namespace weft::data {

// One element: a tensor for each component.
using Element = std::vector<Tensor>;

// Numbers of elements that are none, as TensorFlow writes them.
inline constexpr int64_t kInfinite = -1;
inline constexpr int64_t kUnknown = -2;

class IteratorContext;
using ContextPtr = std::shared_ptr<IteratorContext>;

// The node that made a dataset, for who writes the pipeline down.
struct DatasetOrigin {
  std::string op;
  AttrMap attrs;
  Element inputs;
  std::shared_ptr<const FunctionLibrary> functions;  // null where the op takes none
};

// Gives the elements of a dataset in order. Used by one thread at a time; may wait, until its
// context is cancelled. After an error it may be asked for the element that follows.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // True with an element, false when there is none left, and ever after.
  virtual StatusOr<bool> Next(Element* element) = 0;
};
using IteratorPtr = std::unique_ptr<DatasetIterator>;

// What the components of the elements are.
struct ElementSpec {
  AttrValue::TypeList types;
  AttrValue::ShapeList shapes;
};

// A description of elements: iterators make them. Immutable, so that any number of iterators may
// use it at once. Lives in a variant tensor.
class Dataset : public VariantValue {
 public:
  explicit Dataset(ElementSpec spec) : spec_(std::move(spec)) {}
  absl::string_view type_name() const override { return "tensorflow::DatasetVariantWrapper"; }

  const ElementSpec& spec() const { return spec_; }
  virtual StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const = 0;
  // How many elements there are, as far as that is known without making them.
  virtual int64_t Cardinality() const { return kUnknown; }
  // Element `index` of those that `Cardinality` counts, without those before it.
  virtual StatusOr<Element> At(const ContextPtr& context, int64_t index) const;
  // True if At does not make all elements before.
  virtual bool HasRandomAccess() const { return false; }
  // OK if the elements may be asked for in a random order that covers all of them. As TensorFlow
  // has it, that is more than At of any index: FailedPrecondition says what of the pipeline is
  // against it.
  virtual Status CheckRandomOrder() const;
  // What it reads from, for the options that stand on the way.
  virtual const Dataset* input() const { return nullptr; }
  // A message of dataset_options.proto where this dataset sets some.
  virtual const std::string* options() const { return nullptr; }
  // Null for datasets that no node made: parts of others.
  const DatasetOrigin* origin() const { return origin_.get(); }
  // Once, by who made it, before anybody else sees it.
  void set_origin(std::unique_ptr<const DatasetOrigin> origin) { origin_ = std::move(origin); }

 private:
  const ElementSpec spec_;
  std::unique_ptr<const DatasetOrigin> origin_;
};
using DatasetRef = Ref<Dataset>;

// The dataset in a scalar variant; InvalidArgument if there is another value.
StatusOr<DatasetRef> DatasetOf(const Tensor& variant);
Tensor VariantOf(DatasetRef dataset);

// InvalidArgument, in TensorFlow's words, if elements of `got` may not be taken for `wanted`.
Status CheckSpec(const ElementSpec& wanted, const ElementSpec& got);

// Row `row` of a tensor, with its bytes.
StatusOr<Tensor> RowOf(const Tensor& tensor, int64_t row);
// Copies all of `from` to element `to_index` of `to` on; types must agree.
void CopyInto(const Tensor& from, Tensor* to, int64_t to_index);
// `a` elements followed by `b` elements; n of the kind of those that are no number.
int64_t AddCardinalities(int64_t a, int64_t b);

}  // namespace weft::data
