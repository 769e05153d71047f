// SPDX-License-Identifier: Apache-2.0
// Input pipelines: a chain of datasets, and the iterator from which steps take their elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "weft/graph/builder.h"
#include "weft/graph/function.h"
#include "weft/train/program.h"

namespace weft::train {

// As many at once as there are processors.
inline constexpr int64_t kAsManyAsGood = -1;

struct MapOptions {
  int64_t parallel_calls = 1;  // elements computed at once
  bool in_order = true;        // with several at once: in the order of the input
  // What the function needs of the graph around it: further arguments behind the components.
  std::vector<Endpoint> captured = {};
};

struct InterleaveOptions {
  int64_t cycle_length = 4;    // datasets that are open at once
  int64_t block_length = 1;    // elements in a row of each of them
  int64_t parallel_calls = 1;  // datasets that are read at once
  bool in_order = true;
  std::vector<Endpoint> captured = {};
};

struct ShuffleOptions {
  // As TensorFlow's ops take them, with its order; both zero gives another order at each start.
  int64_t seed = 0, seed2 = 0;
  bool again_each_time = true;  // another order in each repetition
};

struct PadOptions {
  // What each component is padded to, -1: as long as the longest of the batch. Empty: to what is
  // known of the component's shape.
  std::vector<PartialShape> shapes = {};
  // Scalars that are padded with, one a component. Empty: zeros and empty strings.
  std::vector<Endpoint> values = {};
  bool drop_remainder = false;
};

struct FileOptions {
  std::string compression = {};  // "", "GZIP" or "ZLIB"
  int64_t buffer_bytes = 256 << 10;
};

struct FixedRecordOptions {
  int64_t header_bytes = 0, footer_bytes = 0;  // of each file, left out
  std::string compression = {};
  int64_t buffer_bytes = 256 << 10;
};

// A description of elements, each a list of tensors, made of one node of the builder's graph: each
// call adds a node and leaves this one as it was. Errors stick to the builder, and what comes back
// is then empty. A value; the builder must outlive it.
//   Dataset clicks = Dataset::Records(b, paths).Shuffle(10'000).Map(Parse).Batch(64).Prefetch(2);
class Dataset {
 public:
  // The datasets of a function that gives one: of FlatMap and Interleave.
  using Body = std::function<Dataset(GraphBuilder& body, absl::Span<const Endpoint> arguments)>;

  Dataset() = default;  // of nothing; only good to be assigned to
  // start, start + step, ... below (above, for a negative step) stop: int64 scalars.
  static Dataset Range(GraphBuilder& builder, int64_t start, int64_t stop, int64_t step = 1);
  // One element.
  static Dataset Tensors(GraphBuilder& builder, const std::vector<Endpoint>& components);
  // Element i is row i of each of `components`, which have equally many.
  static Dataset Slices(GraphBuilder& builder, const std::vector<Endpoint>& components);
  // The paths of the files that fit `patterns` ("data/part-*"), sorted: string scalars.
  static Dataset Files(GraphBuilder& builder, const std::vector<std::string>& patterns);
  // The lines of text files without their ends; `paths`: a string scalar or vector, as below.
  static Dataset Lines(GraphBuilder& builder, Endpoint paths, const FileOptions& options = {});
  // The records of TFRecord files.
  static Dataset Records(GraphBuilder& builder, Endpoint paths, const FileOptions& options = {});
  // Pieces of `record_bytes` bytes.
  static Dataset FixedRecords(GraphBuilder& builder, Endpoint paths, int64_t record_bytes,
                              const FixedRecordOptions& options = {});
  // Element i of each of `inputs` side by side, as long as all have one.
  static Dataset Zip(const std::vector<Dataset>& inputs);

  // `function` of each element: its arguments are the components, its results those of the new one.
  Dataset Map(const FunctionBody& function, const MapOptions& options = {}) const;
  // The elements for which `predicate` gives a true boolean scalar.
  Dataset Filter(const FunctionBody& predicate, const std::vector<Endpoint>& captured = {}) const;
  // The elements of the dataset that `function` makes of each element, one dataset after another.
  Dataset FlatMap(const Body& function, const std::vector<Endpoint>& captured = {}) const;
  // The same, several datasets in turn.
  Dataset Interleave(const Body& function, const InterleaveOptions& options = {}) const;

  // `size` elements as one, with a new first axis; the last one may have fewer.
  Dataset Batch(int64_t size, bool drop_remainder = false) const;
  Dataset PaddedBatch(int64_t size, const PadOptions& options = {}) const;
  // The rows of each element, as elements.
  Dataset Unbatch() const;
  // Each element drawn from the next `buffer` ones.
  Dataset Shuffle(int64_t buffer, const ShuffleOptions& options = {}) const;
  Dataset Repeat(int64_t count = -1) const;  // -1: without end
  Dataset Take(int64_t count) const;         // -1: all
  Dataset Skip(int64_t count) const;
  // Every `num_shards`-th element from element `index` on: what one of several workers reads.
  Dataset Shard(int64_t num_shards, int64_t index) const;
  // Kept in memory, or in files that begin with `path`, while they are made for the first time.
  Dataset Cache(const std::string& path = "") const;
  // Up to `buffer` elements are made before they are asked for.
  Dataset Prefetch(int64_t buffer = kAsManyAsGood) const;
  Dataset Concatenate(const Dataset& next) const;

  // What the components are.
  const std::vector<TensorType>& types() const { return types_; }
  // The dataset itself: a scalar variant.
  const Endpoint& variant() const { return variant_; }

 private:
  Dataset(GraphBuilder* builder, std::vector<TensorType> types)
      : builder_(builder), types_(std::move(types)) {}
  // Adds a node of `op`, which gives elements of `types`, to the graph of `builder`.
  static Dataset Make(GraphBuilder* builder, const char* op, std::vector<Argument> inputs,
                      std::vector<TensorType> types, AttrMap attrs = {},
                      const char* types_attr = "output_types");
  // The same behind this one.
  Dataset Then(const char* op, const std::vector<Argument>& inputs, std::vector<TensorType> types,
               AttrMap attrs = {}, const char* types_attr = "output_types") const;
  // False, with an error in the builder, if this is not a dataset of the builder's graph.
  bool IsThere(const char* what) const;
  // Defines a function of this one's elements and of `captured`.
  Function Define(const char* name, const FunctionBody& body,
                  const std::vector<Endpoint>& captured) const;
  Function DefineOfDatasets(const char* name, const Body& body,
                            const std::vector<Endpoint>& captured,
                            std::vector<TensorType>* types) const;

  GraphBuilder* builder_ = nullptr;
  std::vector<TensorType> types_;
  Endpoint variant_;
};

// One way through a dataset.
struct DatasetIterator {
  std::string name;
  Endpoint handle;
  // The components of the next element: all that a step reads of them are of one element, and the
  // next step gets another. OutOfRange when there is none left.
  std::vector<Endpoint> next;
  Node* initializer = nullptr;  // begins with the first element
};

// An iterator on the builder's device. Program::InitializeVariables and MonitoredSession begin it,
// and with `saved` a Saver that is made later saves where it stands, and lets it go on there.
DatasetIterator AddIterator(Program& program, const Dataset& dataset,
                            const std::string& name = "iterator", bool saved = true);

}  // namespace weft::train
