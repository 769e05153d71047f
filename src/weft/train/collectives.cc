// SPDX-License-Identifier: Apache-2.0
#include "weft/train/collectives.h"

#include <utility>

#include "base/crc32c.h"
#include "weft/kernel/collective_runner.h"

namespace weft::train {
namespace {

const char* MergeName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return "Min";
    case Reduction::kMax:
      return "Max";
    case Reduction::kProduct:
      return "Mul";
    case Reduction::kMean:
    case Reduction::kSum:
      break;
  }
  return "Add";
}

DType ElementTypeOf(const Endpoint& value) { return value.node->output_type(value.port).dtype; }

DType TypeOnWire(OnTheWire wire, DType dtype) {
  if (wire == OnTheWire::kAsTheyAre || (dtype != DType::kFloat && dtype != DType::kDouble))
    return dtype;
  return wire == OnTheWire::kHalf ? DType::kHalf : DType::kBfloat16;
}

const std::vector<Endpoint> kNoTokens;

}  // namespace

std::vector<Endpoint> Collectives::Keys(int32_t size, const std::string& name) {
  const int number = names_[name]++;
  // Not negative, as TensorFlow's keys are.
  const auto instance = static_cast<int32_t>(Crc32c(absl::StrCat(name, " ", number)) & 0x7fffffffu);
  return {builder_.Scalar<int32_t>(size), builder_.Scalar<int32_t>(options_.group_key),
          builder_.Scalar<int32_t>(instance)};
}

Endpoint Collectives::Cast(Endpoint value, DType dtype) {
  return !value || ElementTypeOf(value) == dtype ? value
                                                 : builder_.Op("Cast", {value}, {{"DstT", dtype}});
}

Endpoint Collectives::Reduced(const char* op, Endpoint value, Reduction reduction,
                              const std::string& name) {
  if (!value || !builder_.ok()) return {};
  const DType dtype = ElementTypeOf(value);
  const std::vector<Endpoint> keys = Keys(options_.size, name);
  const Endpoint sent = Cast(value, TypeOnWire(options_.wire, dtype));
  const Endpoint got =
      builder_.Op(op, {sent, keys[0], keys[1], keys[2], kNoTokens},
                  {{"merge_op", std::string(MergeName(reduction))},
                   {"final_op", std::string(reduction == Reduction::kMean ? "Div" : "Id")},
                   {"communication_hint", options_.algorithm}},
                  name);
  return Cast(got, dtype);
}

Endpoint Collectives::AllReduce(Endpoint value, Reduction reduction, const std::string& name) {
  return Reduced("CollectiveReduceV2", value, reduction, name);
}

Endpoint Collectives::ReduceScatter(Endpoint value, Reduction reduction, const std::string& name) {
  return Reduced("CollectiveReduceScatterV2", value, reduction, name);
}

Endpoint Collectives::AllGather(Endpoint value, const std::string& name) {
  const std::vector<Endpoint> keys = Keys(options_.size, name);
  return builder_.Op("CollectiveGatherV2", {value, keys[0], keys[1], keys[2], kNoTokens},
                     {{"communication_hint", options_.algorithm}}, name);
}

Endpoint Collectives::AllToAll(Endpoint value, const std::string& name) {
  if (options_.size == 0) {
    builder_.Fail(InvalidArgument("All-to-all '", name,
                                  "' needs a group of a fixed size, ranks of this come and go"));
    return {};
  }
  const std::vector<Endpoint> keys = Keys(options_.size, name);
  return builder_.Op("CollectiveAllToAllV2", {value, keys[0], keys[1], keys[2], kNoTokens},
                     {{"communication_hint", options_.algorithm}}, name);
}

// A sum in which the others give nothing: who the root is may be another rank in each step.
Endpoint Collectives::Broadcast(Endpoint value, Endpoint is_root, const std::string& name) {
  const Endpoint nothing = builder_.Op("ZerosLike", {value});
  const Endpoint own = builder_.Op("SelectV2", {is_root, value, nothing});
  if (!own) return {};
  // Not in a narrower type: all ranks shall have the root's bits.
  const std::vector<Endpoint> keys = Keys(options_.size, name);
  return builder_.Op("CollectiveReduceV2", {own, keys[0], keys[1], keys[2], kNoTokens},
                     {{"merge_op", std::string("Add")},
                      {"final_op", std::string("Id")},
                      {"communication_hint", options_.algorithm}},
                     name);
}

Node* Collectives::Barrier(const std::string& name) {
  return AllReduce(builder_.Scalar<int32_t>(0), Reduction::kMax, name).node;
}

Endpoint Collectives::Form(int32_t fewest, Endpoint own, const std::string& name) {
  const std::vector<Endpoint> keys = Keys(-fewest, name);
  const Endpoint row =
      builder_.Op("Reshape", {own, builder_.Constant(Tensor::Vector<int32_t>({1}))});
  return builder_.Op("CollectiveGatherV2", {row, keys[0], keys[1], keys[2], kNoTokens}, {}, name);
}

std::vector<Endpoint> Collectives::AllReduceInBuckets(const std::vector<Endpoint>& values,
                                                      Reduction reduction, int64_t bucket_bytes,
                                                      const std::string& name) {
  struct Bucket {
    DType dtype = DType::kInvalid;
    int64_t bytes = 0;
    std::vector<size_t> members;
  };
  std::vector<Shape> shapes(values.size());
  std::vector<Bucket> buckets;
  // A backward pass has the last gradients first.
  for (size_t i = values.size(); i-- > 0;) {
    const StatusOr<Shape> shape = builder_.ShapeOf(values[i]).ToShape();
    if (!values[i] || !shape.ok()) {
      builder_.Fail(InvalidArgument("What is reduced together must have known shapes; value ", i,
                                    " of '", name, "' has not"));
      return {};
    }
    shapes[i] = *shape;
    const DType dtype = ElementTypeOf(values[i]);
    const int64_t bytes = shape->num_elements() * static_cast<int64_t>(DTypeSize(dtype));
    if (buckets.empty() || buckets.back().dtype != dtype ||
        buckets.back().bytes + bytes > bucket_bytes) {
      buckets.push_back({.dtype = dtype});
    }
    buckets.back().bytes += bytes;
    buckets.back().members.push_back(i);
  }
  std::vector<Endpoint> out(values.size());
  for (const Bucket& bucket : buckets) {
    if (bucket.members.size() == 1) {
      out[bucket.members[0]] = AllReduce(values[bucket.members[0]], reduction, name);
      continue;
    }
    const Endpoint flat = builder_.Constant(Tensor::Vector<int32_t>({-1}));
    const Endpoint axis = builder_.Scalar<int32_t>(0);
    std::vector<Endpoint> parts;
    std::vector<int64_t> sizes;
    for (const size_t i : bucket.members) {
      parts.push_back(builder_.Op("Reshape", {values[i], flat}));
      sizes.push_back(shapes[i].num_elements());
    }
    const Endpoint whole = AllReduce(builder_.Op("ConcatV2", {parts, axis}), reduction, name);
    const auto count = static_cast<int64_t>(sizes.size());
    Node* const split = builder_.AddNode(
        "SplitV",
        {whole, builder_.Constant(Tensor::FromSpan<int64_t>({count}, absl::MakeConstSpan(sizes))),
         axis},
        {{"num_split", count}});
    if (split == nullptr) return {};
    for (size_t k = 0; k < bucket.members.size(); ++k) {
      const size_t i = bucket.members[k];
      const absl::Span<const int64_t> dims = shapes[i].dims();
      out[i] = builder_.Op("Reshape", {Endpoint{split, static_cast<int>(k)},
                                       builder_.Constant(Tensor::FromSpan<int64_t>(
                                           {static_cast<int64_t>(dims.size())}, dims))});
    }
  }
  return out;
}

}  // namespace weft::train
