// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/settings_files.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace weft::serving {
namespace {

constexpr uint64_t kMostBytes = 16 << 20;
constexpr size_t kLeastToken = 16;

// The first error with its place.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The number, or what is usual where it was not given.
int64_t NumberOr(const google::protobuf::Int64Value& given, bool is_given, int64_t usual) {
  return is_given ? given.value() : usual;
}

}  // namespace

Status ReadTextMessage(FileSystem& files, const std::string& path,
                       google::protobuf::Message* message) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  return ParseTextMessage(text, path, message);
}

Status ParseTextMessage(const std::string& text, const std::string& from,
                        google::protobuf::Message* message) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  return InvalidArgument(from, ":", error.text(), "; expected a ", message->GetTypeName(),
                         " as text");
}

StatusOr<BatchingOptions> BatchingFrom(const tensorflow::serving::BatchingParameters& parameters) {
  BatchingOptions options;
  options.max_rows =
      NumberOr(parameters.max_batch_size(), parameters.has_max_batch_size(), options.max_rows);
  options.max_execution_rows = NumberOr(parameters.max_execution_batch_size(), true, 0);
  options.timeout = absl::Microseconds(NumberOr(parameters.batch_timeout_micros(), true, 0));
  options.max_batches = NumberOr(parameters.max_enqueued_batches(),
                                 parameters.has_max_enqueued_batches(), options.max_batches);
  if (parameters.has_num_batch_threads()) {
    const int64_t threads = NumberOr(parameters.num_batch_threads(), true, 0);
    if (threads < 1 || threads > 1024)
      return InvalidArgument("num_batch_threads is ", threads, ", expected 1 to 1024");
    options.threads = static_cast<int>(threads);
  }
  options.allowed_rows.assign(parameters.allowed_batch_sizes().begin(),
                              parameters.allowed_batch_sizes().end());
  const google::protobuf::BoolValue& splits = parameters.enable_large_batch_splitting();
  options.split_large = splits.value();
  WEFT_RETURN_IF_ERROR(CheckBatchingOptions(options));
  return options;
}

StatusOr<wire::PortSecurity> SecurityFrom(const tensorflow::serving::SSLConfig& config) {
  if (config.server_cert().empty() || config.server_key().empty())
    return InvalidArgument("An SSLConfig needs server_cert and server_key, texts in PEM");
  if (config.client_verify() && config.custom_ca().empty())
    return InvalidArgument("client_verify needs custom_ca: who must have signed the clients'?");
  return wire::PortSecurity{
      .certificate_pem = config.server_cert(),
      .key_pem = config.server_key(),
      .client_authority_pem = config.client_verify() ? config.custom_ca() : ""};
}

StatusOr<std::vector<std::string>> ReadTokens(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  std::vector<std::string> tokens;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.size() < kLeastToken)
      return InvalidArgument(path, ":", number, ": a token of ", line.size(),
                             " characters can be guessed, expected ", kLeastToken, " at least");
    tokens.emplace_back(line);
  }
  if (tokens.empty()) return InvalidArgument(path, " holds no token");
  return tokens;
}

}  // namespace weft::serving
