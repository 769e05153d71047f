// SPDX-License-Identifier: Apache-2.0
// Strings to numbers below a limit, the same ones always.
#include <array>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/fingerprint.h"

namespace weft::ops::io::hash_bucket {
namespace {

enum class Hash { kMurmur, kFast, kStrong };

template <Hash hash>
class HashKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t buckets, c.Attr<int64_t>("num_buckets"));
    std::array<uint64_t, 2> key{};
    if (hash == Hash::kStrong) {
      WEFT_ASSIGN_OR_RETURN(const AttrValue::IntList given, c.Attr<AttrValue::IntList>("key"));
      if (given.size() != 2) {
        return InvalidArgument("Key must have 2 elements, got ", given.size());
      }
      key = {static_cast<uint64_t>(given[0]), static_cast<uint64_t>(given[1])};
    }
    return std::make_unique<HashKernel>(static_cast<uint64_t>(buckets), key);
  }
  HashKernel(uint64_t buckets, const std::array<uint64_t, 2>& key) : buckets_(buckets), key_(key) {}

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    c.ParallelFor(in.num_elements(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out->data<int64_t>()[i] = static_cast<int64_t>(Of(in.data<std::string>()[i]) % buckets_);
      }
    });
    return absl::OkStatus();
  }

 private:
  uint64_t Of(const std::string& text) const {
    if constexpr (hash == Hash::kMurmur) return MurmurHash64(text);
    if constexpr (hash == Hash::kFast) return Fingerprint64(text);
    return SipHash64(key_, text);
  }

  const uint64_t buckets_;
  const std::array<uint64_t, 2> key_;
};

template <Hash hash>
void Add(Catalogue& catalogue, const char* name, const char* input, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation).Input(input).Output("output: int64").Attr("num_buckets: int >= 1");
  if (hash == Hash::kStrong) spec.Attr("key: list(int)");
  spec.Shape(shapes::SameAsInput).NoGradient().Kernel(MakeKernel<HashKernel<hash>>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add<Hash::kMurmur>(catalogue, "StringToHashBucket", "string_tensor: string",
                     "The hash of each string modulo num_buckets. For new programs "
                     "StringToHashBucketFast spreads better.");
  Add<Hash::kFast>(catalogue, "StringToHashBucketFast", "input: string",
                   "The 64-bit fingerprint of each string modulo num_buckets; the same on every "
                   "machine and in every version.");
  Add<Hash::kStrong>(catalogue, "StringToHashBucketStrong", "input: string",
                     "A keyed hash of each string modulo num_buckets: who does not know the two "
                     "numbers of `key` cannot find strings that fall together.");
}

}  // namespace weft::ops::io::hash_bucket
