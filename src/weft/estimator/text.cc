// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/text.h"

#include <algorithm>
#include <utility>

#include "weft/estimator/checks.h"
#include "weft/estimator/encoding.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/vocabulary.h"

namespace weft::estimator {
namespace {

constexpr const char* kPunctuation = R"([!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\'])";

bool IsText(Endpoint x) { return TypeOf(x) == DType::kString; }
bool IsWhole(Endpoint x) { return TypeOf(x) == DType::kInt32 || TypeOf(x) == DType::kInt64; }

// A list of texts or of whole numbers as a field; null where it is empty.
void WordsField(ConfigFields& f, const char* name, std::vector<std::string>* words) {
  Json list = words->empty() ? Json() : Json::MakeArray();
  for (const std::string& word : *words) list.Append(word);
  f.Raw(name, list);
  words->clear();
  for (const Json& item : list.items()) words->push_back(item.AsString().value_or(""));
}
void NumbersField(ConfigFields& f, const char* name, std::vector<int64_t>* numbers) {
  Json list = numbers->empty() ? Json() : Json::MakeArray();
  for (const int64_t number : *numbers) list.Append(number);
  f.Raw(name, list);
  numbers->clear();
  for (const Json& item : list.items()) numbers->push_back(item.AsInt().value_or(0));
}

// Where a lookup's ids begin.
struct Places {
  int64_t mask = 0;  // 1 where id 0 is the mask's
  int64_t oov = 1;
};

// Ids of `x`: of the vocabulary behind the mask's and the others'.
Endpoint IdsOf(LayerCall& call, const Vocabulary& vocabulary, Endpoint x, const Places& places) {
  GraphBuilder& b = call.b();
  const Endpoint found = vocabulary.IdsOf(call.program(), nullptr, x, "vocabulary", -1);
  if (!b.ok()) return {};
  const Endpoint zeros = b.Op("ZerosLike", {found});
  Endpoint is_mask;
  if (places.mask > 0) {
    is_mask = b.Op("Equal", {x, IsText(x) ? b.Scalar<std::string>("") : b.Scalar<int64_t>(0)});
  }
  Endpoint ids;
  if (places.oov == 0) {
    const Endpoint sure = is_mask ? b.Op("SelectV2", {is_mask, zeros, found}) : found;
    ids = b.Op("AddV2", {InRange(b, sure, vocabulary.size(), "Values that have no id stand"),
                         b.Scalar<int64_t>(places.mask)});
  } else {
    Endpoint other = zeros;
    if (places.oov > 1) {
      other = IsText(x) ? b.Op("StringToHashBucketFast", {x}, {{"num_buckets", places.oov}})
                        : b.Op("FloorMod", {x, b.Scalar<int64_t>(places.oov)});
    }
    const Endpoint known = b.Op("AddV2", {found, b.Scalar<int64_t>(places.oov)});
    ids = b.Op("SelectV2", {b.Op("Less", {found, zeros}), other, known});
    ids = b.Op("AddV2", {ids, b.Scalar<int64_t>(places.mask)});
  }
  return is_mask ? b.Op("SelectV2", {is_mask, zeros, ids}) : ids;
}

// Without the mask's and the others' words that lists of Keras may begin with.
template <typename T>
std::vector<T> Own(std::vector<T> words, const T& mask, const T& oov) {
  size_t first = 0;
  if (first < words.size() && words[first] == mask) ++first;
  while (first < words.size() && words[first] == oov) ++first;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
  return words;
}

template <bool kText>
class LookupLayer final : public Layer {
 public:
  using Word = std::conditional_t<kText, std::string, int64_t>;
  using Settings = std::pair<std::vector<Word>, LookupOptions>;
  LookupLayer() = default;
  explicit LookupLayer(Settings s) : words_(std::move(s.first)), o_(std::move(s.second)) {}
  const char* class_name() const override { return kText ? "StringLookup" : "IntegerLookup"; }

  void Fields(ConfigFields& f) override {
    f.OptionalSize("max_tokens", max_tokens_);
    f.Field("num_oov_indices", o_.num_oov_indices);
    Json mask = o_.has_mask ? MaskJson() : Json();
    f.Raw("mask_token", mask);
    o_.has_mask = !mask.is_null();
    f.Fixed("oov_token", Json(Unknown()));
    if constexpr (kText) {
      WordsField(f, "vocabulary", &words_);
      f.Fixed("encoding", "utf-8");
    } else {
      NumbersField(f, "vocabulary", &words_);
      f.Fixed("vocabulary_dtype", "int64");
    }
    f.Field("invert", o_.invert);
    f.Field("output_mode", o_.output_mode);
    f.Fixed("sparse", false);
    f.Fixed("pad_to_max_tokens", false);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!b.ok()) return {};
    const std::vector<Word> words = Own<Word>(words_, Mask(), Unknown());
    if (words.empty() || o_.num_oov_indices < 0) {
      call.Fail(InvalidArgument("has ", words.size(), " words and num_oov_indices ",
                                o_.num_oov_indices, ", expected a vocabulary"));
      return {};
    }
    const bool ids_in = o_.invert;
    if (ids_in ? !IsWhole(x) : (kText ? !IsText(x) : !IsWhole(x))) {
      call.Fail(InvalidArgument("got ", DTypeName(TypeOf(x)), ", expected ",
                                kText && !ids_in ? "strings" : "whole numbers"));
      return {};
    }
    if (IsWhole(x)) x = CastTo(b, x, DType::kInt64);
    // Only ids have one for the mask.
    const bool as_ids = o_.output_mode == "int";
    const Places places{as_ids && o_.has_mask ? 1 : 0, o_.num_oov_indices};
    const Vocabulary vocabulary(words);
    if (o_.invert) return {{Inverted(call, vocabulary, x, places), {}}};
    const Endpoint ids = IdsOf(call, vocabulary, x, places);
    const int64_t size = static_cast<int64_t>(words.size()) + places.oov + places.mask;
    return {{Encoded(call, ids, size, o_.output_mode), {}}};
  }

 private:
  // What stands for the mask and for words that are not in the vocabulary.
  static Word Mask() { return Word(); }
  static Word Unknown() {
    if constexpr (kText) {
      return "[UNK]";
    } else {
      return -1;
    }
  }
  static Json MaskJson() { return Json(Mask()); }

  Endpoint Inverted(LayerCall& call, const Vocabulary& vocabulary, Endpoint ids,
                    const Places& places) const {
    GraphBuilder& b = call.b();
    const Word masked = Mask(), unknown = Unknown();
    const Endpoint own = b.Op("Sub", {ids, b.Scalar<int64_t>(places.mask + places.oov)});
    const Endpoint found =
        vocabulary.WordsOf(call.program(), own, "vocabulary", Tensor::Scalar<Word>(unknown));
    if (places.mask == 0) return found;
    const Endpoint is_mask = b.Op("Equal", {ids, b.Scalar<int64_t>(0)});
    return b.Op("SelectV2", {is_mask, b.Scalar<Word>(masked), found});
  }

  std::vector<Word> words_;
  LookupOptions o_;
  int64_t max_tokens_ = -1;
};

class HashingLayer final : public Layer {
 public:
  HashingLayer() = default;
  explicit HashingLayer(int64_t num_bins) : num_bins_(num_bins) {}
  const char* class_name() const override { return "Hashing"; }
  void Fields(ConfigFields& f) override {
    f.Field("num_bins", num_bins_);
    f.Fixed("salt", Json());
    f.Fixed("mask_value", Json());
    f.Fixed("output_mode", "int");
    f.Fixed("sparse", false);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (num_bins_ < 1 || !b.ok() || (!IsText(x) && !IsWhole(x))) {
      call.Fail(InvalidArgument("num_bins is ", num_bins_,
                                "; expected one or more, and strings or whole numbers"));
      return {};
    }
    if (!IsText(x)) x = b.Op("AsString", {x});
    return {{b.Op("StringToHashBucketFast", {x}, {{"num_buckets", num_bins_}}), {}}};
  }

 private:
  int64_t num_bins_ = 1;
};

class HashedCrossingLayer final : public Layer {
 public:
  HashedCrossingLayer() = default;
  explicit HashedCrossingLayer(std::pair<int64_t, std::string> s)
      : num_bins_(s.first), output_mode_(std::move(s.second)) {}
  const char* class_name() const override { return "HashedCrossing"; }
  InputStyle input_style() const override { return InputStyle::kList; }
  void Fields(ConfigFields& f) override {
    f.Field("num_bins", num_bins_);
    f.Field("output_mode", output_mode_);
    f.Fixed("sparse", false);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    std::vector<Endpoint> columns;
    std::vector<DType> types;
    bool all_text = true;
    const int rank = in.empty() ? 0 : b.ShapeOf(in[0].tensor).rank();
    for (const Value& value : in) {
      Endpoint x = value.tensor;
      const PartialShape shape = b.ShapeOf(x);
      const bool fits = (rank == 1 || rank == 2) && shape.rank() == rank &&
                        (rank == 1 || shape.dim(1) == 1) && (IsText(x) || IsWhole(x));
      if (!fits || num_bins_ < 1 || in.size() < 2) {
        call.Fail(InvalidArgument("num_bins is ", num_bins_, ", of ", in.size(),
                                  " inputs one has shape ", shape.ToString(),
                                  "; expected one or more, and two or more inputs of strings or "
                                  "whole numbers, all [batch] or all [batch, 1]"));
        return {};
      }
      if (!IsText(x)) x = CastTo(b, x, DType::kInt64);
      all_text = all_text && IsText(x);
      columns.push_back(rank == 1 ? ExpandDim(b, x, 1) : x);
      types.push_back(TypeOf(x));
    }
    const std::vector<Endpoint> none;
    Node* crossed = b.AddNode("SparseCross", {none, none, none, columns},
                              {{"N", 0},
                               {"hashed_output", true},
                               {"num_buckets", num_bins_},
                               {"hash_key", int64_t{0xDECAFCAFFE}},  // Keras's
                               {"sparse_types", std::vector<DType>()},
                               {"dense_types", types},
                               {"out_type", DType::kInt64},
                               {"internal_type", all_text ? DType::kString : DType::kInt64}});
    if (crossed == nullptr) return {};
    // One value an example: those of the sparse matrix are all there is.
    const Endpoint flat = ReshapeTo(b, {crossed, 1}, {-1});
    const Endpoint ids = rank == 1 ? flat : ExpandDim(b, flat, 1);
    return {{Encoded(call, ids, num_bins_, output_mode_), {}}};
  }

 private:
  int64_t num_bins_ = 1;
  std::string output_mode_ = "int";
};

class CategoryEncodingLayer final : public Layer {
 public:
  CategoryEncodingLayer() = default;
  explicit CategoryEncodingLayer(std::pair<int64_t, std::string> s)
      : num_tokens_(s.first), output_mode_(std::move(s.second)) {}
  const char* class_name() const override { return "CategoryEncoding"; }
  void Fields(ConfigFields& f) override {
    f.Field("num_tokens", num_tokens_);
    f.Field("output_mode", output_mode_);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    const Endpoint ids = CastTo(call.b(), in[0].tensor, DType::kInt64);
    if (output_mode_ == "int") {
      call.Fail(InvalidArgument("output_mode is 'int', expected one_hot, multi_hot or count"));
      return {};
    }
    return {{Encoded(call, ids, num_tokens_, output_mode_), {}}};
  }

 private:
  int64_t num_tokens_ = 1;
  std::string output_mode_ = "multi_hot";
};

class DiscretizationLayer final : public Layer {
 public:
  DiscretizationLayer() = default;
  explicit DiscretizationLayer(std::pair<std::vector<double>, std::string> s)
      : boundaries_(std::move(s.first)), output_mode_(std::move(s.second)) {}
  const char* class_name() const override { return "Discretization"; }
  Json Config(int keras) override {
    Json config = Layer::Config(keras);
    if (keras == 3) config.Erase("trainable");  // which its constructor does not take
    return config;
  }
  void Fields(ConfigFields& f) override {
    Json list = Json::MakeArray();
    for (const double boundary : boundaries_) list.Append(boundary);
    f.Raw("bin_boundaries", list);
    boundaries_.clear();
    for (const Json& item : list.items()) boundaries_.push_back(item.AsDouble().value_or(0));
    f.Field("output_mode", output_mode_);
    f.Fixed("sparse", false);
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    if (boundaries_.empty() || !std::is_sorted(boundaries_.begin(), boundaries_.end())) {
      call.Fail(InvalidArgument("expected bin_boundaries that rise"));
      return {};
    }
    const std::vector<float> boundaries(boundaries_.begin(), boundaries_.end());
    const Endpoint x = CastTo(b, in[0].tensor, DType::kFloat);
    const Endpoint ids =
        CastTo(b, b.Op("Bucketize", {x}, {{"boundaries", boundaries}}), DType::kInt64);
    return {{Encoded(call, ids, static_cast<int64_t>(boundaries.size()) + 1, output_mode_), {}}};
  }

 private:
  std::vector<double> boundaries_;
  std::string output_mode_ = "int";
};

class TextVectorizationLayer final : public Layer {
 public:
  using Settings = std::pair<std::vector<std::string>, TextVectorizationOptions>;
  TextVectorizationLayer() = default;
  explicit TextVectorizationLayer(Settings s)
      : words_(std::move(s.first)), o_(std::move(s.second)) {}
  const char* class_name() const override { return "TextVectorization"; }
  void Fields(ConfigFields& f) override {
    f.OptionalSize("max_tokens", max_tokens_);
    Text(f, "standardize", &o_.standardize);
    Text(f, "split", &o_.split);
    f.Fixed("ngrams", Json());
    f.Field("output_mode", o_.output_mode);
    f.OptionalSize("output_sequence_length", o_.output_sequence_length);
    f.Fixed("pad_to_max_tokens", false);
    f.Fixed("sparse", false);
    f.Fixed("ragged", false);
    WordsField(f, "vocabulary", &words_);
  }
  Status ReadConfig(const Json& config) override {
    WEFT_RETURN_IF_ERROR(Layer::ReadConfig(config));
    // Null is a setting here, and not that there is none.
    for (const auto& [name, text] :
         {std::pair("standardize", &o_.standardize), std::pair("split", &o_.split)}) {
      const Json* given = config.Find(name);
      if (given != nullptr && given->is_null()) text->clear();
    }
    return absl::OkStatus();
  }
  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    const PartialShape shape = b.ShapeOf(x);
    if (!b.ok() || !IsText(x) || (shape.rank() != 1 && (shape.rank() != 2 || shape.dim(1) != 1))) {
      call.Fail(InvalidArgument("got ", DTypeName(TypeOf(x)), " ", shape.ToString(),
                                ", expected strings, [batch] or [batch, 1]"));
      return {};
    }
    const std::vector<std::string> words = Own<std::string>(words_, "", "[UNK]");
    const bool as_ids = o_.output_mode == "int";
    if (words.empty() || (!as_ids && o_.output_mode != "multi_hot" && o_.output_mode != "count")) {
      call.Fail(InvalidArgument("has ", words.size(), " words and output_mode '", o_.output_mode,
                                "', expected a vocabulary and int, multi_hot or count"));
      return {};
    }
    x = Standardized(call, ReshapeTo(b, x, {-1}));
    Node* split = Split(call, x);
    if (split == nullptr) return {};
    const Places places{as_ids ? 1 : 0, 1};
    const Endpoint ids = IdsOf(call, Vocabulary(words), {split, 1}, places);
    const int64_t nothing = as_ids ? 0 : -1;
    const Endpoint rows = Rows(b, split, ids, nothing);
    const int64_t size = static_cast<int64_t>(words.size()) + places.oov + places.mask;
    return {{Encoded(call, rows, size, o_.output_mode), {}}};
  }

 private:
  static void Text(ConfigFields& f, const char* name, std::string* text) {
    Json value = text->empty() ? Json() : Json(*text);
    f.Raw(name, value);
    *text = value.AsString().value_or("");
  }

  Endpoint Standardized(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    const std::string& how = o_.standardize;
    if (how.empty()) return x;
    const bool both = how == "lower_and_strip_punctuation";
    if (!both && how != "lower" && how != "strip_punctuation") {
      call.Fail(InvalidArgument("standardize is '", how,
                                "', expected lower_and_strip_punctuation, lower or "
                                "strip_punctuation"));
      return {};
    }
    if (both || how == "lower") x = b.Op("StringLower", {x});
    if (both || how == "strip_punctuation") {
      x = b.Op("StaticRegexReplace", {x}, {{"pattern", kPunctuation}, {"rewrite", ""}});
    }
    return x;
  }

  // Indices, values and shape of the texts' words.
  Node* Split(LayerCall& call, Endpoint x) const {
    GraphBuilder& b = call.b();
    if (!b.ok()) return nullptr;
    if (o_.split == "whitespace") {
      return b.AddNode("StringSplitV2", {x, b.Scalar<std::string>("")});
    }
    call.Fail(InvalidArgument("split is '", o_.split, "', expected whitespace"));
    return nullptr;
  }

  // [batch, words]: `nothing` behind the last word of a text.
  Endpoint Rows(GraphBuilder& b, Node* split, Endpoint ids, int64_t nothing) const {
    const int64_t length = o_.output_mode == "int" ? o_.output_sequence_length : -1;
    Endpoint shape = {split, 2};
    if (length > 0) {
      shape = b.Op("Maximum", {shape, b.Constant(Tensor::Vector<int64_t>({0, length}))});
    }
    const Endpoint rows =
        b.Op("SparseToDense", {Endpoint{split, 0}, shape, ids, b.Scalar<int64_t>(nothing)});
    if (length <= 0) return ReshapeUnknown(b, rows);
    const Endpoint cut = b.Op("Slice", {rows, IntVector(b, {0, 0}), IntVector(b, {-1, length})});
    return b.Op("EnsureShape", {cut}, {{"shape", PartialShape{-1, length}}});
  }
  static Endpoint ReshapeUnknown(GraphBuilder& b, Endpoint rows) {
    return b.Op("EnsureShape", {rows}, {{"shape", PartialShape{-1, -1}}});
  }

  std::vector<std::string> words_;
  TextVectorizationOptions o_;
  int64_t max_tokens_ = -1;
};

}  // namespace

LayerRef StringLookup(const std::vector<std::string>& vocabulary, const LookupOptions& options) {
  return MakeLayer<LookupLayer<true>>(std::pair(vocabulary, options), options.name);
}
LayerRef IntegerLookup(const std::vector<int64_t>& vocabulary, const LookupOptions& options) {
  return MakeLayer<LookupLayer<false>>(std::pair(vocabulary, options), options.name);
}
LayerRef Hashing(int64_t num_bins, const std::string& name) {
  return MakeLayer<HashingLayer>(num_bins, name);
}
LayerRef HashedCrossing(int64_t num_bins, const std::string& output_mode, const std::string& name) {
  return MakeLayer<HashedCrossingLayer>(std::pair(num_bins, output_mode), name);
}
LayerRef CategoryEncoding(int64_t num_tokens, const std::string& output_mode,
                          const std::string& name) {
  return MakeLayer<CategoryEncodingLayer>(std::pair(num_tokens, output_mode), name);
}
LayerRef Discretization(const std::vector<double>& bin_boundaries, const std::string& output_mode,
                        const std::string& name) {
  return MakeLayer<DiscretizationLayer>(std::pair(bin_boundaries, output_mode), name);
}
LayerRef TextVectorization(const std::vector<std::string>& vocabulary,
                           const TextVectorizationOptions& options) {
  return MakeLayer<TextVectorizationLayer>(std::pair(vocabulary, options), options.name);
}

void AddTextLayers(LayerClasses& classes) {
  classes.Add<LookupLayer<true>>();
  classes.Add<LookupLayer<false>>();
  classes.Add<HashingLayer>();
  classes.Add<HashedCrossingLayer>();
  classes.Add<CategoryEncodingLayer>();
  classes.Add<DiscretizationLayer>();
  classes.Add<TextVectorizationLayer>();
}

}  // namespace weft::estimator
