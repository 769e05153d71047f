// SPDX-License-Identifier: Apache-2.0
// What iterators of one pipeline share: where they run, how they end, the functions that they call.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

#include "base/cancellation.h"
#include "base/files.h"
#include "weft/data/dataset.h"
#include "weft/kernel/function_library.h"

namespace weft::data {

// A function of the graph with what it takes besides the element.
struct CapturedFunction {
  FunctionRef function;
  Element captured;
  std::shared_ptr<const FunctionLibrary> library;
};

struct Seeds {
  uint64_t first = 0;
  uint64_t second = 0;
  bool operator==(const Seeds&) const = default;
};
// Of the machine's own entropy.
Seeds RandomSeeds();

// Thread-safe. Lives as long as the iterators that use it; the device must outlive it.
class IteratorContext : public std::enable_shared_from_this<IteratorContext> {
 public:
  using Done = FunctionRunner::Done;

  // For iterators that outlive the step.
  static ContextPtr OfKernel(const KernelContext& c);
  // For iterators that end with the step, or before.
  static ContextPtr OfStep(const KernelContext& c);
  // Cancelled with this one, or by itself.
  ContextPtr Child();

  Device& device() const;
  WaitRegistry* waits() const;
  StatusOr<FileSystem*> files() const;
  Cancellation& cancellation() { return *cancellation_; }
  // CANCELLED once it is.
  Status Check() const;

  // The function's results for `arguments` and what it captured.
  void Call(const CapturedFunction& function, Element arguments, Done done);
  // The same, and waits for them.
  StatusOr<Element> CallAndWait(const CapturedFunction& function, Element arguments);
  // The same for a function that gives one scalar.
  template <typename T>
  StatusOr<T> CallForScalar(const CapturedFunction& function, Element arguments) {
    WEFT_ASSIGN_OR_RETURN(const Element results, CallAndWait(function, std::move(arguments)));
    if (results.size() != 1 || results[0].dtype() != DTypeOf<T> || !results[0].shape().IsScalar()) {
      return InvalidArgument("Function '", function.function.name, "' must give one scalar of ",
                             DTypeName(DTypeOf<T>));
    }
    return results[0].scalar<T>();
  }

  // `asked`, or numbers of its own where both are 0, which `drawn` then tells in their order.
  Seeds Resolve(Seeds asked);
  // `current`, which `drawn` then tells too, or what a saved iterator told in its place.
  Seeds Keep(Seeds current);
  // Which way through a dataset this is; children are of the same one.
  uint64_t way() const;
  // What Resolve and Keep told so far; and what they shall tell from now on, as a saved iterator
  // did.
  std::vector<Seeds> drawn() const;
  void Draw(std::vector<Seeds> seeds);

 private:
  struct Shared;
  IteratorContext(std::shared_ptr<Shared> shared, Cancellation* parent);
  FunctionRunner& RunnerOf(const std::shared_ptr<const FunctionLibrary>& library);

  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<Cancellation> cancellation_;
};

}  // namespace weft::data
