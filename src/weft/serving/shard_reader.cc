// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/shard_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "proto/tensorflow/example.pb.h"
#include "weft/serving/rest_values.h"

namespace weft::serving {
namespace {

constexpr size_t kChunkBytes = 256 << 10;

// Copies the values of `from` behind those of earlier rows, if there are `count`.
template <typename T, typename List>
bool CopyRow(const List& from, int64_t row, int64_t count, Tensor* to) {
  if (from.value_size() != count) return false;
  T* out = to->data<T>() + row * count;
  for (const auto& value : from.value()) *out++ = static_cast<T>(value);
  return true;
}

bool CopyFeature(const tensorflow::Feature& feature, int64_t row, int64_t count, Tensor* to) {
  switch (to->dtype()) {
    case DType::kFloat:
      return CopyRow<float>(feature.float_list(), row, count, to);
    case DType::kDouble:
      return CopyRow<double>(feature.float_list(), row, count, to);
    case DType::kInt64:
      return CopyRow<int64_t>(feature.int64_list(), row, count, to);
    case DType::kInt32:
      return CopyRow<int32_t>(feature.int64_list(), row, count, to);
    case DType::kBool:
      return CopyRow<bool>(feature.int64_list(), row, count, to);
    case DType::kString:
      return CopyRow<std::string>(feature.bytes_list(), row, count, to);
    default:
      return false;
  }
}

// A tensor for `rows` rows of the input.
StatusOr<Tensor> RowsOf(const std::string& name, const train::SignatureTensor& input,
                        int64_t rows) {
  if (input.name.empty() || !input.shape.known_rank() || input.shape.rank() == 0)
    return InvalidArgument("Input '", name, "' has no rows that a record could be one of");
  Dims dims = {rows};
  for (int i = 1; i < input.shape.rank(); ++i) {
    if (input.shape.dim(i) < 0)
      return InvalidArgument("Input '", name, "' has rows of unknown shape ",
                             input.shape.ToString(), ": give lines of JSON");
    dims.push_back(input.shape.dim(i));
  }
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  return Tensor::Zeros(input.dtype, shape);
}

StatusOr<std::map<std::string, Tensor>> InputsOfExamples(const std::vector<std::string>& records,
                                                         const train::Signature& signature) {
  const auto rows = static_cast<int64_t>(records.size());
  std::map<std::string, Tensor> inputs;
  const train::SignatureTensor& first = signature.inputs.begin()->second;
  if (signature.inputs.size() == 1 && first.dtype == DType::kString &&
      (!first.shape.known_rank() || first.shape.rank() == 1)) {
    Tensor texts = Tensor::FromSpan<std::string>(Shape{rows}, absl::MakeConstSpan(records));
    inputs.emplace(signature.inputs.begin()->first, std::move(texts));
    return inputs;
  }
  for (const auto& [name, input] : signature.inputs) {
    WEFT_ASSIGN_OR_RETURN(inputs[name], RowsOf(name, input, rows));
  }
  for (int64_t row = 0; row < rows; ++row) {
    tensorflow::Example example;
    if (!example.ParseFromString(records[static_cast<size_t>(row)]))
      return InvalidArgument("Record ", row, " is no tf.Example");
    for (auto& [name, tensor] : inputs) {
      const auto feature = example.features().feature().find(name);
      if (feature == example.features().feature().end())
        return InvalidArgument("Record ", row, " has no feature '", name, "'");
      const int64_t count = tensor.num_elements() / rows;
      if (!CopyFeature(feature->second, row, count, &tensor))
        return InvalidArgument("Record ", row, ": feature '", name, "' does not hold the ", count,
                               " values of ", DTypeName(tensor.dtype()),
                               " that the signature takes");
    }
  }
  return inputs;
}

}  // namespace

StatusOr<std::unique_ptr<ShardReader>> ShardReader::Open(FileSystem& files,
                                                         const std::string& path) {
  absl::string_view name = path;
  const auto compression =
      absl::ConsumeSuffix(&name, ".gz") ? storage::Compression::kGzip : storage::Compression::kNone;
  std::unique_ptr<ShardReader> reader(new ShardReader(path));
  if (absl::EndsWith(name, ".tfrecord") || absl::EndsWith(name, ".tfrecords")) {
    WEFT_ASSIGN_OR_RETURN(reader->records_, storage::RecordReader::Open(files, path, compression));
    return reader;
  }
  if (!absl::EndsWith(name, ".jsonl"))
    return InvalidArgument("Expected x.jsonl, x.tfrecord or one of them with .gz, got ", path);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenRead(path));
  reader->source_ = storage::MakeSource(std::move(file), path, compression);
  return reader;
}

StatusOr<bool> ShardReader::ReadLine(std::string* line) {
  line->clear();
  while (true) {
    const size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos || ended_) {
      const bool has_line = end != std::string::npos || at_ < buffer_.size();
      line->append(buffer_, at_, end == std::string::npos ? end : end - at_);
      at_ = end == std::string::npos ? buffer_.size() : end + 1;
      return has_line;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    if (buffer_.size() > kMostLineBytes)
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, " has a line of more than ", kMostLineBytes, " bytes"));
    const size_t old = buffer_.size();
    buffer_.resize(old + kChunkBytes);
    WEFT_ASSIGN_OR_RETURN(const size_t got,
                          source_->Read(absl::MakeSpan(buffer_.data() + old, kChunkBytes)));
    buffer_.resize(old + got);
    ended_ = got < kChunkBytes;
  }
}

Status ShardReader::Read(size_t count, std::vector<std::string>* records) {
  records->clear();
  while (records->size() < count) {
    std::string record;
    WEFT_ASSIGN_OR_RETURN(const bool more,
                          holds_examples() ? records_->Next(&record) : ReadLine(&record));
    if (!more) return absl::OkStatus();
    if (!holds_examples() && absl::StripAsciiWhitespace(record).empty()) continue;
    records->push_back(std::move(record));
  }
  return absl::OkStatus();
}

StatusOr<std::map<std::string, Tensor>> InputsOfRecords(const std::vector<std::string>& records,
                                                        bool examples,
                                                        const train::Signature& signature) {
  if (signature.inputs.empty()) return InvalidArgument("The signature takes no inputs");
  if (examples) return InputsOfExamples(records, signature);
  WEFT_ASSIGN_OR_RETURN(
      const Json body,
      ParseRestBody(absl::StrCat("{\"instances\": [", absl::StrJoin(records, ",\n"), "]}")));
  WEFT_ASSIGN_OR_RETURN(RestInputs inputs, ReadRestInputs(body, signature));
  return std::move(inputs.tensors);
}

}  // namespace weft::serving
