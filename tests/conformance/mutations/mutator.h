// SPDX-License-Identifier: Apache-2.0
// Makes a trial from its number: a case of an op, changed here and there.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "cases.h"

namespace weft::mutations {

// What a session is given. The graph as bytes: they may be no graph any more.
struct Trial {
  std::string op;
  std::string graph;
  std::vector<tensorflow::RunStepRequest> steps;
  bool fold = true;
  bool fuse = true;
  bool two_threads = false;
};

// The same cases and the same number give the same trial on every machine.
Trial MakeTrial(const Cases& cases, uint64_t number);

// Random choices of one trial, and changes of small things.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Bits() { return random_(); }
  // In [0, n); n must be positive.
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <typename List>
  auto& Of(List& list) {
    return list[static_cast<int>(Below(static_cast<uint64_t>(list.size())))];
  }

  // A number at which code goes wrong; rarely one that would be a large size.
  int64_t Number();
  double Real();
  std::string Text(const std::string& was);
  void Change(std::string* bytes);

 private:
  std::mt19937_64 random_;
};

// Changes a tensor: values, shape, type or the bytes themselves.
void ChangeTensor(tensorflow::TensorProto* tensor, Dice* dice);
// Changes an attribute, mostly to another of its kind.
void ChangeAttr(tensorflow::AttrValue* value, Dice* dice);

}  // namespace weft::mutations
