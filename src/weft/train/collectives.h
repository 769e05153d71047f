// SPDX-License-Identifier: Apache-2.0
// What several programs compute together, as nodes of their graphs: all-reduce, all-gather,
// reduce-scatter, all-to-all, broadcast, barrier.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/graph/builder.h"

namespace weft::train {

enum class Reduction { kMean, kSum, kMin, kMax, kProduct };

// In which type numbers travel: a narrower one halves the bytes and rounds each term.
enum class OnTheWire { kAsTheyAre, kHalf, kBfloat16 };

struct CollectiveOptions {
  // Ranks meet by this key, and collectives by their names, of which a program's second of one name
  // is another: so all programs must have the same ones.
  int32_t group_key = 0x57454654;
  // How many ranks there are. 0: those that formed the group last (Form), who come and go.
  int32_t size = 0;
  // "auto" chooses by size and hosts; else direct, ring, halving_doubling or hierarchical.
  std::string algorithm = "auto";
  OnTheWire wire = OnTheWire::kAsTheyAre;
};

// Adds nodes where the builder is. A step that runs one waits until all ranks run it. Errors:
// InvalidArgument where ranks disagree on shape, type or reduction, Unavailable when a rank is
// lost, Aborted where a rank's step failed or the group is over. Not thread-safe.
class Collectives {
 public:
  Collectives(GraphBuilder& builder, CollectiveOptions options)
      : builder_(builder), options_(std::move(options)) {}

  // The reduction of all ranks' values, which have one shape. Types: floating point, int32, int64
  // (a mean of which is rounded toward zero).
  Endpoint AllReduce(Endpoint value, Reduction reduction, const std::string& name);
  // All ranks' values, one after the other along dimension 0; of one shape.
  Endpoint AllGather(Endpoint value, const std::string& name);
  // Part r of dimension 0 of the reduction, for rank r; there are as many equal parts as ranks.
  Endpoint ReduceScatter(Endpoint value, Reduction reduction, const std::string& name);
  // Row r of each rank's value goes to rank r: dimension 0 is the number of ranks, which is fixed.
  Endpoint AllToAll(Endpoint value, const std::string& name);
  // The value of the one rank for which `is_root` (a bool scalar) is true; the others give one of
  // its shape.
  Endpoint Broadcast(Endpoint value, Endpoint is_root, const std::string& name);
  // Nothing of the step that depends on it runs before all ranks have come to it.
  Node* Barrier(const std::string& name);
  // Mean or sum of many values at once: values of one type travel together, up to `bucket_bytes` in
  // one message, the last of `values` first; each bucket leaves as soon as its values are there,
  // beside what is still computed. Shapes must be known.
  std::vector<Endpoint> AllReduceInBuckets(const std::vector<Endpoint>& values, Reduction reduction,
                                           int64_t bucket_bytes, const std::string& name);
  // Of a group whose ranks come and go: leaves it and forms it again of all ranks that live,
  // `fewest` at least; gives what the ranks give, an int64 scalar each, in order. A step that runs
  // it runs nothing else of the group.
  Endpoint Form(int32_t fewest, Endpoint own, const std::string& name);

 private:
  Endpoint Reduced(const char* op, Endpoint value, Reduction reduction, const std::string& name);
  std::vector<Endpoint> Keys(int32_t size, const std::string& name);
  Endpoint Cast(Endpoint value, DType dtype);

  GraphBuilder& builder_;
  const CollectiveOptions options_;
  std::map<std::string, int> names_;
};

}  // namespace weft::train
