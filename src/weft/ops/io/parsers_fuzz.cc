// SPDX-License-Identifier: Apache-2.0
// Any bytes as what ops take apart: CSV lines, JSON, examples, messages and their descriptors,
// tensors, sounds, compressed and encoded texts. Each op refuses them or gives what its shape
// function says.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/ops/io/message_type_kernel.h"
#include "weft/ops/testing/kernel_runner.h"

namespace {

using weft::AttrMap;
using weft::AttrValue;
using weft::DType;
using weft::PartialShape;
using weft::Shape;
using weft::Tensor;
using weft::ops::testing::KernelRunner;
using weft::ops::testing::TestInput;

// An op whose first input is the bytes: a scalar, or a vector of one.
struct Parser {
  std::unique_ptr<KernelRunner> runner;
  bool is_vector = false;
};

Tensor Words(std::vector<std::string> words) {
  return Tensor::FromSpan<std::string>(Shape{static_cast<int64_t>(words.size())}, words);
}

class Parsers {
 public:
  Parsers() {
    const std::vector<Tensor> defaults = {Tensor::Vector<float>({0.5f}), Words({"none"}),
                                          Tensor::FromSpan<int64_t>(Shape{0}, {})};
    Add("DecodeCSV", true, {TestInput(defaults)});
    Add("DecodeCSV", true, {TestInput(defaults)},
        {{"field_delim", ";"}, {"na_value", "NA"}, {"select_cols", AttrValue::IntList{0, 2, 3}}});
    Add("DecodeCSV", true, {TestInput(defaults)}, {{"use_quote_delim", false}});
    Add("DecodeJSONExample", false, {});
    for (const DType dtype : {DType::kFloat, DType::kString, DType::kInt64}) {
      Add("ParseTensor", false, {}, {{"out_type", dtype}});
    }
    Add("DecodeWav", false, {});
    for (const char* kind : {"ZLIB", "GZIP"}) {
      Add("DecodeCompressed", false, {}, {{"compression_type", kind}});
    }
    for (const char* encoding : {"UTF-8", "UTF-16-BE", "UTF-32-LE"}) {
      Add("UnicodeDecode", true, {}, {{"input_encoding", encoding}});
      Add("UnicodeTranscode", false, {},
          {{"input_encoding", encoding}, {"output_encoding", "UTF-16-BE"}});
    }
    Add("StringUpper", false, {}, {{"encoding", "utf-8"}});
    Add("DecodeBase64", false, {});
    Add("StringToNumber", false, {}, {{"out_type", DType::kDouble}});
    AddExamples();
    for (const char* format : {"binary", "text"}) {
      Add("DecodeProtoV2", true, {},
          {{"message_type", "tensorflow.Feature"},
           {"message_format", format},
           {"field_names", AttrValue::StringList{"float_list", "int64_list"}},
           {"output_types", AttrValue::TypeList{DType::kString, DType::kString}}});
    }
  }

  void Try(size_t which, std::string bytes) {
    if (which % (parsers_.size() + 1) == parsers_.size()) return TryDescriptors(bytes);
    Parser& parser = parsers_[which % (parsers_.size() + 1)];
    parser.runner->set_input(
        0, parser.is_vector ? Words({std::move(bytes)}) : Tensor::Scalar(std::move(bytes)));
    const auto outputs = parser.runner->Run();
    if (!outputs.ok() && outputs.status().code() == absl::StatusCode::kInternal) __builtin_trap();
  }

 private:
  // The bytes as descriptors of messages, and as such a message.
  static void TryDescriptors(const std::string& bytes) {
    const auto type = weft::ops::io::MessageType::Load("bytes://" + bytes, "m", nullptr);
    if (!type.ok()) return;
    (void)(*type)->Reserialize(bytes, false).status();
    (void)(*type)->Reserialize(bytes, true).status();
    (void)(*type)->Field("f").status();
  }

  void AddExamples() {
    const std::vector<Tensor> defaults = {Tensor::Vector<float>({1, 2})};
    Add("ParseExampleV2", true,
        {Words({}), Words({"s"}), Words({"d"}), Words({"r"}), TestInput(defaults)},
        {{"num_sparse", 1},
         {"sparse_types", AttrValue::TypeList{DType::kInt64}},
         {"ragged_value_types", AttrValue::TypeList{DType::kString}},
         {"ragged_split_types", AttrValue::TypeList{DType::kInt32}},
         {"dense_shapes", AttrValue::ShapeList{PartialShape{2}}}});
    Add("ParseSingleExample", false, {TestInput(defaults)},
        {{"num_sparse", 1},
         {"sparse_keys", AttrValue::StringList{"s"}},
         {"dense_keys", AttrValue::StringList{"d"}},
         {"sparse_types", AttrValue::TypeList{DType::kInt64}},
         {"dense_shapes", AttrValue::ShapeList{PartialShape{2}}}});
  }

  void Add(const char* op, bool is_vector, std::vector<TestInput> more, AttrMap attrs = {}) {
    std::vector<TestInput> inputs = {is_vector ? Words({""}) : Tensor::Scalar(std::string())};
    for (TestInput& input : more) inputs.push_back(std::move(input));
    auto runner = KernelRunner::Make(op, std::move(inputs), std::move(attrs));
    if (!runner.ok()) __builtin_trap();
    parsers_.push_back({*std::move(runner), is_vector});
  }

  std::vector<Parser> parsers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Parsers& parsers = *new Parsers();
  if (size == 0) return 0;
  parsers.Try(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
