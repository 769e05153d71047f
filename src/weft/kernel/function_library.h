// SPDX-License-Identifier: Apache-2.0
// The functions of a graph for who calls them when the step is over: iterators of datasets.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"

#include "weft/graph/node_def.h"
#include "weft/kernel/kernel_context.h"

namespace weft {

class Graph;

// The functions of a graph, apart from its steps. Thread-safe.
class FunctionLibrary {
 public:
  virtual ~FunctionLibrary() = default;
  // Calls through different runners share no state of stateful kernels. A runner must outlive its
  // calls, and the device must outlive both.
  virtual std::unique_ptr<FunctionRunner> NewRunner() const = 0;
  // What the function of this name is; null if there is none.
  virtual const FunctionDef* Definition(absl::string_view name) const = 0;
  // The functions of `graph` instead of these, called in the same place.
  virtual std::shared_ptr<const FunctionLibrary> WithFunctionsOf(const Graph& graph) const = 0;
};

// What runs functions for kernels of a graph is one of these as well.
class LibraryOwner {
 public:
  virtual ~LibraryOwner() = default;
  // The same functions without the step.
  virtual std::shared_ptr<const FunctionLibrary> Library() = 0;
};

}  // namespace weft
