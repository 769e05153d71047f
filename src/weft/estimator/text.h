// SPDX-License-Identifier: Apache-2.0
// Layers that make numbers of texts and categories. They have no weights; their vocabularies are
// settings.
#pragma once

#include <string>
#include <vector>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// What comes of the ids of an example's values: "int" (they themselves), "one_hot" (of each, along
// a new last axis), "multi_hot" (1 where an id is among them) or "count" (how often it is).
struct LookupOptions {
  int64_t num_oov_indices = 1;  // of values that the vocabulary has not; several are hashed to
  // Id 0, where it is given: "" for no text, of numbers 0.
  bool has_mask = false;
  bool invert = false;  // from ids to values
  std::string output_mode = "int";
  std::string name = {};
};
LayerRef StringLookup(const std::vector<std::string>& vocabulary,
                      const LookupOptions& options = {});
LayerRef IntegerLookup(const std::vector<int64_t>& vocabulary, const LookupOptions& options = {});

// Texts or whole numbers to [0, num_bins).
LayerRef Hashing(int64_t num_bins, const std::string& name = "");
// Called on {a, b, ...}: each combination of the values that an example has in them to [0,
// num_bins), as LookupOptions tells of output_mode.
LayerRef HashedCrossing(int64_t num_bins, const std::string& output_mode = "int",
                        const std::string& name = "");
// Ids below `num_tokens`, as LookupOptions tells of output_mode.
LayerRef CategoryEncoding(int64_t num_tokens, const std::string& output_mode = "multi_hot",
                          const std::string& name = "");
// Which range between the rising boundaries a number lies in.
LayerRef Discretization(const std::vector<double>& bin_boundaries,
                        const std::string& output_mode = "int", const std::string& name = "");

struct TextVectorizationOptions {
  // "lower_and_strip_punctuation", "lower", "strip_punctuation" or "" for texts as they are.
  std::string standardize = "lower_and_strip_punctuation";
  std::string split = "whitespace";
  std::string output_mode = "int";      // or "multi_hot" or "count"
  int64_t output_sequence_length = -1;  // ids a text, cut or filled up with 0; -1: the longest's
  std::string name = {};
};
// The ids of a text's words: 0 is no word, 1 a word that the vocabulary has not.
LayerRef TextVectorization(const std::vector<std::string>& vocabulary,
                           const TextVectorizationOptions& options = {});

}  // namespace weft::estimator
