// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace weft::ops {
namespace {

constexpr uint64_t kPrime0 = 0xc3a5c85c97cb3127;
constexpr uint64_t kPrime1 = 0xb492b66fbe98f273;
constexpr uint64_t kPrime2 = 0x9ae16a3b2f90404f;
constexpr uint64_t kMurmur = 0xc6a4a7935bd1e995;

using Pair = std::pair<uint64_t, uint64_t>;

uint64_t Word(const char* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

uint64_t HalfWord(const char* p) {
  uint32_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

uint64_t ShiftMix(uint64_t x) { return x ^ (x >> 47); }

uint64_t Mix(uint64_t u, uint64_t v, uint64_t multiplier) {
  const uint64_t a = ShiftMix((u ^ v) * multiplier);
  return ShiftMix((v ^ a) * multiplier) * multiplier;
}

uint64_t UpTo16(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  if (n >= 8) {
    const uint64_t a = Word(s) + kPrime2;
    const uint64_t b = Word(s + n - 8);
    return Mix(std::rotr(b, 37) * multiplier + a, (std::rotr(a, 25) + b) * multiplier, multiplier);
  }
  if (n >= 4) return Mix(n + (HalfWord(s) << 3), HalfWord(s + n - 4), multiplier);
  if (n == 0) return kPrime2;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint32_t y = byte(0) + (byte(n >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return ShiftMix(y * kPrime2 ^ z * kPrime0) * kPrime2;
}

uint64_t UpTo32(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  const uint64_t a = Word(s) * kPrime1;
  const uint64_t b = Word(s + 8);
  const uint64_t c = Word(s + n - 8) * multiplier;
  const uint64_t d = Word(s + n - 16) * kPrime2;
  return Mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kPrime2, 18) + c,
             multiplier);
}

uint64_t UpTo64(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  const uint64_t a = Word(s) * kPrime2;
  const uint64_t b = Word(s + 8);
  const uint64_t c = Word(s + n - 8) * multiplier;
  const uint64_t d = Word(s + n - 16) * kPrime2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = Mix(y, a + std::rotr(b + kPrime2, 18) + c, multiplier);
  const uint64_t e = Word(s + 16) * multiplier;
  const uint64_t f = Word(s + 24);
  const uint64_t g = (y + Word(s + n - 32)) * multiplier;
  const uint64_t h = (z + Word(s + n - 24)) * multiplier;
  return Mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, multiplier);
}

Pair Hash32Bytes(const char* s, uint64_t a, uint64_t b) {
  a += Word(s);
  b = std::rotr(b + a + Word(s + 24), 21);
  const uint64_t start = a;
  a += Word(s + 8) + Word(s + 16);
  b += std::rotr(a, 44);
  return {a + Word(s + 24), b + start};
}

// What goes from block to block of 64 bytes.
struct Blocks {
  uint64_t x, y, z;
  Pair v{0, 0};
  Pair w{0, 0};

  void Add(const char* s, uint64_t multiplier, uint64_t weight) {
    x = std::rotr(x + y + v.first + Word(s + 8), 37) * multiplier;
    y = std::rotr(y + v.second + Word(s + 48), 42) * multiplier;
    x ^= w.second * weight;
    y += v.first * weight + Word(s + 40);
    z = std::rotr(z + w.first, 33) * multiplier;
    v = Hash32Bytes(s, v.second * multiplier, x + w.first);
    w = Hash32Bytes(s + 32, z + w.second, y + Word(s + 16));
    std::swap(z, x);
  }
};

uint64_t MixPair(uint64_t u, uint64_t v) { return Mix(u, v, 0x9ddfea08eb382d69); }

// Of up to 127 bytes.
Pair ShortHash128(const char* s, size_t n, Pair seed) {
  uint64_t a = seed.first, b = seed.second, c = 0, d = 0;
  if (n <= 16) {
    a = ShiftMix(a * kPrime1) * kPrime1;
    c = b * kPrime1 + UpTo16(s, n);
    d = ShiftMix(a + (n >= 8 ? Word(s) : c));
  } else {
    c = MixPair(Word(s + n - 8) + kPrime1, a);
    d = MixPair(b + n, c + Word(s + n - 16));
    a += d;
    for (const char* const end = s + (n - 1) / 16 * 16; s != end; s += 16) {
      a = (a ^ ShiftMix(Word(s) * kPrime1) * kPrime1) * kPrime1;
      b ^= a;
      c = (c ^ ShiftMix(Word(s + 8) * kPrime1) * kPrime1) * kPrime1;
      d ^= c;
    }
  }
  a = MixPair(a, c);
  b = MixPair(d, b);
  return {a ^ b, MixPair(b, a)};
}

Pair LongHash128(const char* s, size_t n, Pair seed) {
  Blocks state{.x = seed.first, .y = seed.second, .z = n * kPrime1};
  state.v.first = std::rotr(state.y ^ kPrime1, 49) * kPrime1 + Word(s);
  state.v.second = std::rotr(state.v.first, 42) * kPrime1 + Word(s + 8);
  state.w.first = std::rotr(state.y + state.z, 35) * kPrime1 + state.x;
  state.w.second = std::rotr(state.x + Word(s + 88), 53) * kPrime1;
  for (; n >= 128; n -= 128, s += 128) {
    state.Add(s, kPrime1, 1);
    state.Add(s + 64, kPrime1, 1);
  }
  auto& [x, y, z, v, w] = state;
  x += std::rotr(v.first + z, 49) * kPrime0;
  y = y * kPrime0 + std::rotr(w.second, 37);
  z = z * kPrime0 + std::rotr(w.first, 27);
  w.first *= 9;
  v.first *= kPrime0;
  for (size_t done = 32; done < n + 32; done += 32) {
    const char* tail = s + n - done;
    y = std::rotr(x + y, 42) * kPrime0 + v.second;
    w.first += Word(tail + 16);
    x = x * kPrime0 + w.first;
    z += w.second + Word(tail);
    w.second += v.first;
    v = Hash32Bytes(tail, v.first + z, v.second);
    v.first *= kPrime0;
  }
  x = MixPair(x, v.first);
  y = MixPair(y + z, w.first);
  return {MixPair(x + v.second, w.second) + y, MixPair(x + w.second, y + v.second)};
}

}  // namespace

std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view bytes) {
  const char* s = bytes.data();
  size_t n = bytes.size();
  Pair seed = {kPrime0, kPrime1};
  if (n >= 16) {
    seed = {Word(s), Word(s + 8) + kPrime0};
    s += 16;
    n -= 16;
  }
  return n < 128 ? ShortHash128(s, n, seed) : LongHash128(s, n, seed);
}

uint64_t Fingerprint64(absl::string_view bytes) {
  const char* s = bytes.data();
  const size_t n = bytes.size();
  if (n <= 16) return UpTo16(s, n);
  if (n <= 32) return UpTo32(s, n);
  if (n <= 64) return UpTo64(s, n);
  constexpr uint64_t kSeed = 81;
  Blocks state{.x = kSeed * kPrime2 + Word(s),
               .y = kSeed * kPrime1 + 113,
               .z = ShiftMix((kSeed * kPrime1 + 113) * kPrime2 + 113) * kPrime2};
  // All whole blocks but the last bytes, which are then taken as the last 64.
  const size_t rest = (n - 1) % 64;
  for (const char* const end = s + (n - 1) / 64 * 64; s != end; s += 64) {
    state.Add(s, kPrime1, 1);
  }
  const uint64_t multiplier = kPrime1 + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Add(bytes.data() + n - 64, multiplier, 9);
  return Mix(Mix(state.v.first, state.w.first, multiplier) + ShiftMix(state.y) * kPrime0 + state.z,
             Mix(state.v.second, state.w.second, multiplier) + state.x, multiplier);
}

uint64_t FingerprintCat64(uint64_t first, uint64_t second) {
  uint64_t both = first ^ kMurmur;
  both ^= ShiftMix(second * kMurmur) * kMurmur;
  both *= kMurmur;
  return ShiftMix(ShiftMix(both) * kMurmur);
}

uint64_t MurmurHash64(absl::string_view bytes) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  uint64_t hash = kSeed ^ (bytes.size() * kMurmur);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const uint64_t word = Word(bytes.data()) * kMurmur;
    hash = (hash ^ (ShiftMix(word) * kMurmur)) * kMurmur;
  }
  if (!bytes.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data(), bytes.size());
    hash = (hash ^ rest) * kMurmur;
  }
  return ShiftMix(ShiftMix(hash) * kMurmur);
}

uint64_t SipHash64(const std::array<uint64_t, 2>& key, absl::string_view bytes) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                   key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v[0] += v[1], v[2] += v[3];
      v[1] = std::rotl(v[1], 13) ^ v[0], v[3] = std::rotl(v[3], 16) ^ v[2];
      v[0] = std::rotl(v[0], 32);
      v[2] += v[1], v[0] += v[3];
      v[1] = std::rotl(v[1], 17) ^ v[2], v[3] = std::rotl(v[3], 21) ^ v[0];
      v[2] = std::rotl(v[2], 32);
    }
  };
  const auto add = [&](uint64_t word) {
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
  };
  const uint64_t size = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(Word(bytes.data()));
  uint64_t last = size << 56;
  for (size_t i = 0; i < bytes.size(); ++i) {
    last |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  add(last);
  v[2] ^= 0xff;
  rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace weft::ops
