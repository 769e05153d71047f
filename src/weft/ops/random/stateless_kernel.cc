// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/random/stateless_kernel.h"

#include "weft/ops/index_values.h"
#include "weft/ops/random/fill_kernel.h"

namespace weft::ops {
namespace {

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
uint64_t WordPair(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

Philox Start(uint64_t key, const uint64_t* counter) {
  return Philox({Low(counter[0]), High(counter[0]), Low(counter[1]), High(counter[1])},
                {Low(key), High(key)});
}

}  // namespace

StatusOr<KeyAndCounter> MixSeeds(const Tensor& seeds) {
  if (seeds.rank() != 1 || seeds.dim(0) != 2) {
    return InvalidArgument("seed must have shape [2], not ", seeds.shape().ToString());
  }
  if (seeds.dtype() != DType::kInt32 && seeds.dtype() != DType::kInt64) {
    return InvalidArgument("Invalid seed type: ", DTypeName(seeds.dtype()));
  }
  const auto first = static_cast<uint64_t>(IndexAt(seeds, 0));
  const auto second = static_cast<uint64_t>(IndexAt(seeds, 1));
  // One step under TensorFlow's own key mixes the seeds.
  Philox mixer({Low(first), High(first), Low(second), High(second)}, {0x3ec8f720, 0x02461e29});
  const Philox::Words mixed = mixer.Next();
  return KeyAndCounter{WordPair(mixed[0], mixed[1]), {0, WordPair(mixed[2], mixed[3])}};
}

StatusOr<Philox> GeneratorOfSeed(const Tensor& seeds) {
  WEFT_ASSIGN_OR_RETURN(const KeyAndCounter mixed, MixSeeds(seeds));
  return Start(mixed.key, mixed.counter);
}

StatusOr<Philox> GeneratorOfKey(const Tensor& key, const Tensor& counter, const Tensor& algorithm) {
  if (algorithm.rank() != 0) {
    return InvalidArgument("algorithm must be of shape [], not ", algorithm.shape().ToString());
  }
  const int32_t chosen = algorithm.scalar<int32_t>();
  if (chosen != kPhiloxAlgorithm && chosen != kAnyAlgorithm) {
    return InvalidArgument("Unsupported algorithm id: ", chosen, ", expected ", kPhiloxAlgorithm,
                           " (Philox) or ", kAnyAlgorithm, " (any)");
  }
  if (key.rank() != 1 || key.dim(0) != 1) {
    return InvalidArgument("key must have shape [1], got ", key.shape().ToString());
  }
  if (counter.rank() != 1 || counter.dim(0) < 2) {
    return InvalidArgument("counter must be a vector of at least 2 elements, got shape ",
                           counter.shape().ToString());
  }
  return Start(key.data<uint64_t>()[0], counter.data<uint64_t>());
}

Status FillWords(KernelContext& c, const Philox& start, Tensor& out) {
  Status filled;
  VisitDType(out.dtype(), TypeList<int32_t, int64_t, uint32_t, uint64_t>(), [&]<typename T>() {
    filled = FillGroups<T>(c, out, [&](int64_t group, T* to) {
      Philox generator = start;
      generator.Skip(static_cast<uint64_t>(group));
      const Philox::Words words = generator.Next();
      for (int i = 0; i < kPerStep<T>; ++i) {
        if constexpr (sizeof(T) == 8) {
          to[i] = static_cast<T>(WordPair(words[2 * i], words[2 * i + 1]));
        } else {
          to[i] = static_cast<T>(words[i]);
        }
      }
    });
  });
  return filled;
}

}  // namespace weft::ops
