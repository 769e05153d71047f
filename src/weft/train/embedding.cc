// SPDX-License-Identifier: Apache-2.0
#include "weft/train/embedding.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::train {
namespace {

DType TypeOf(const Endpoint& x) {
  return x.node != nullptr ? x.node->output_type(x.port).dtype : DType::kInt64;
}

Endpoint Ints(GraphBuilder& b, absl::Span<const int32_t> values) {
  return b.Constant(Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(values.size())}, values));
}

// Rows `ids` of one part, gathered where it lies: only rows travel.
Endpoint GatherAt(GraphBuilder& b, const Variable& part, Endpoint ids) {
  const std::string outer = b.device();
  if (!part.device.empty()) b.set_device(part.device);
  const Endpoint rows = b.Op("ResourceGather", {part.handle, ids}, {{"dtype", part.dtype}});
  b.set_device(outer);
  return rows;
}

Endpoint LookUpByRemainder(GraphBuilder& b, const std::vector<Variable>& parts, Endpoint ids) {
  const auto count = static_cast<int64_t>(parts.size());
  const Endpoint flat = b.Op("Reshape", {ids, Ints(b, {-1})});
  const Endpoint n = b.Op("Cast", {b.Scalar<int64_t>(count)}, {{"DstT", TypeOf(ids)}});
  const Endpoint owner = b.Op("Cast", {b.Op("FloorMod", {flat, n})}, {{"DstT", DType::kInt32}});
  const Endpoint local = b.Op("FloorDiv", {flat, n});
  const Endpoint places =
      b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Size", {flat}), b.Scalar<int32_t>(1)});
  Node* ids_of = b.AddNode("DynamicPartition", {local, owner}, {{"num_partitions", count}});
  Node* places_of = b.AddNode("DynamicPartition", {places, owner}, {{"num_partitions", count}});
  std::vector<Endpoint> where;
  std::vector<Endpoint> rows;
  for (int p = 0; p < static_cast<int>(parts.size()); ++p) {
    where.push_back({places_of, p});
    rows.push_back(GatherAt(b, parts[p], {ids_of, p}));
  }
  const Endpoint stitched = b.Op("ParallelDynamicStitch", {where, rows});
  const absl::Span<const int64_t> dims = parts[0].shape.dims();
  const std::vector<int32_t> row(dims.begin() + 1, dims.end());
  const std::vector<Endpoint> sizes = {b.Op("Shape", {ids}), Ints(b, row)};
  return b.Op("Reshape", {stitched, b.Op("ConcatV2", {sizes, b.Scalar<int32_t>(0)})});
}

}  // namespace

std::vector<Variable> AddEmbedding(Program& program, const std::string& name, int64_t rows,
                                   int64_t width, int num_parts, const Initializer& initial) {
  std::vector<Variable> parts;
  if (num_parts < 1 || rows < num_parts || width < 1) {
    program.builder().Fail(InvalidArgument("Embedding '", name, "' of ", rows, " rows of ", width,
                                           " cannot be split into ", num_parts, " parts"));
    return parts;
  }
  for (int p = 0; p < num_parts; ++p) {
    const int64_t size = rows / num_parts + (p < rows % num_parts ? 1 : 0);
    parts.push_back(program.AddVariable(absl::StrCat(name, "/part_", p), DType::kFloat,
                                        Shape{size, width}, initial));
  }
  return parts;
}

Endpoint EmbeddingLookup(GraphBuilder& builder, const std::vector<Variable>& parts, Endpoint ids,
                         PartitionStrategy strategy) {
  if (strategy == PartitionStrategy::kDiv || parts.size() <= 1)
    return EmbeddingLookup(builder, parts, ids);
  builder.PushName("embedding_lookup");
  const Endpoint rows = LookUpByRemainder(builder, parts, ids);
  builder.PopName();
  return rows;
}

Endpoint EmbeddingLookupCombined(GraphBuilder& builder, const std::vector<Variable>& parts,
                                 Endpoint ids, Endpoint segments, Combiner combiner,
                                 PartitionStrategy strategy) {
  const Endpoint rows = EmbeddingLookup(builder, parts, ids, strategy);
  if (combiner == Combiner::kMean) return builder.Op("SegmentMean", {rows, segments});
  const Endpoint sum = builder.Op("SegmentSum", {rows, segments});
  if (combiner == Combiner::kSum) return sum;
  // One more for each id, divided by the root of how many there are; at least 1, for examples
  // without any.
  const Endpoint ones =
      builder.Op("OnesLike", {builder.Op("Cast", {segments}, {{"DstT", DType::kFloat}})});
  const Endpoint counts =
      builder.Op("Maximum", {builder.Op("SegmentSum", {ones, segments}), builder.Scalar<float>(1)});
  const Endpoint roots =
      builder.Op("ExpandDims", {builder.Op("Sqrt", {counts}), builder.Scalar<int32_t>(1)});
  return builder.Op("RealDiv", {sum, roots});
}

}  // namespace weft::train
