// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "weft/storage/aws_signature.h"
#include "weft/storage/object_requests.h"
#include "weft/storage/object_store.h"

namespace weft::storage {
namespace {

// The texts of all elements <name> in `xml`, which the store wrote: no attributes, none in itself.
std::vector<std::string> Elements(absl::string_view xml, absl::string_view name) {
  const std::string open = absl::StrCat("<", name, ">");
  const std::string close = absl::StrCat("</", name, ">");
  std::vector<std::string> texts;
  for (size_t at = xml.find(open); at != absl::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == absl::string_view::npos) break;
    texts.push_back(absl::StrReplaceAll(xml.substr(at, end - at), {{"&lt;", "<"},
                                                                   {"&gt;", ">"},
                                                                   {"&quot;", "\""},
                                                                   {"&apos;", "'"},
                                                                   {"&#39;", "'"},
                                                                   {"&#34;", "\""},
                                                                   {"&amp;", "&"}}));
    at = end;
  }
  return texts;
}

std::string FirstElement(absl::string_view xml, absl::string_view name) {
  const std::vector<std::string> all = Elements(xml, name);
  return all.empty() ? "" : all.front();
}

class S3Store final : public ObjectStore {
 public:
  S3Store(std::unique_ptr<ObjectRequests> requests, AwsCredentials credentials, std::string region)
      : requests_(std::move(requests)),
        credentials_(std::move(credentials)),
        region_(std::move(region)) {}

  using Pairs = std::vector<std::pair<std::string, std::string>>;

  StatusOr<HttpAnswer> Send(const std::string& method, const ObjectName& name, Pairs query = {},
                            Pairs headers = {}, std::string body = "") {
    AwsRequest request{.method = method,
                       .host = requests_->host(),
                       .path = absl::StrCat(requests_->path(), PathOf(name)),
                       .query = std::move(query),
                       .headers = std::move(headers),
                       .body = std::move(body)};
    return requests_->Send([&]() -> StatusOr<HttpCall> {
      HttpCall call{.method = method, .path = PathOf(name), .headers = request.headers};
      if (!credentials_.key_id.empty())
        call.headers = SignAws(request, credentials_, region_, absl::Now());
      if (const std::string text = AwsQuery(request); !text.empty())
        absl::StrAppend(&call.path, "?", text);
      call.body = request.body;
      return call;
    });
  }

  StatusOr<FileStat> Stat(const ObjectName& name) override {
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("HEAD", name));
    return StatOfHead(answer, name.url);
  }

  StatusOr<size_t> Read(const ObjectName& name, uint64_t offset, absl::Span<char> buffer) override {
    if (buffer.empty()) return 0;
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          Send("GET", name, {}, {{"range", RangeHeader(offset, buffer.size())}}));
    return TakeRange(answer, offset, buffer, name.url);
  }

  StatusOr<std::unique_ptr<ObjectUpload>> Upload(const ObjectName& name) override;

  StatusOr<std::vector<std::string>> List(const ObjectName& prefix, size_t limit) override {
    std::set<std::string> found;
    std::string next;
    do {
      Pairs query = {{"list-type", "2"}, {"delimiter", "/"}, {"prefix", prefix.key}};
      if (limit > 0) query.emplace_back("max-keys", absl::StrCat(limit + 1));
      if (!next.empty()) query.emplace_back("continuation-token", next);
      WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                            Send("GET", {prefix.bucket, "", prefix.url}, std::move(query)));
      if (answer.status != 200) return AnswerError(answer, "list", prefix.url);
      std::vector<std::string> names = Elements(answer.body, "Key");
      for (const std::string& common : Elements(answer.body, "CommonPrefixes"))
        names.push_back(FirstElement(common, "Prefix"));
      for (const std::string& name : names) {
        const absl::string_view rest = absl::StripPrefix(name, prefix.key);
        if (!rest.empty()) found.emplace(rest);
      }
      next = FirstElement(answer.body, "NextContinuationToken");
    } while (!next.empty() && (limit == 0 || found.size() < limit));
    return std::vector<std::string>(found.begin(), found.end());
  }

  Status Copy(const ObjectName& from, const ObjectName& to) override {
    WEFT_ASSIGN_OR_RETURN(
        const HttpAnswer answer,
        Send("PUT", to, {}, {{"x-amz-copy-source", EncodeUrl(PlainPath(from), true)}}));
    // It may fail after it has answered 200.
    if (answer.status != 200 || absl::StrContains(answer.body, "<Error>"))
      return AnswerError(answer, "copy", from.url);
    return absl::OkStatus();
  }

  Status Delete(const ObjectName& name) override {
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("DELETE", name));
    return answer.status / 100 == 2 ? absl::OkStatus() : AnswerError(answer, "delete", name.url);
  }

 private:
  static std::string PlainPath(const ObjectName& name) {
    return absl::StrCat("/", name.bucket, name.key.empty() ? "" : "/", name.key);
  }
  static std::string PathOf(const ObjectName& name) { return EncodeUrl(PlainPath(name), true); }

  const std::unique_ptr<ObjectRequests> requests_;
  const AwsCredentials credentials_;
  const std::string region_;
};

// A small object in one request, a large one in parts that one more request puts together.
class S3Upload final : public ObjectUpload {
 public:
  S3Upload(S3Store* store, ObjectName name) : store_(store), name_(std::move(name)) {}

  Status Part(const std::string& bytes) override {
    if (id_.empty()) {
      WEFT_ASSIGN_OR_RETURN(const HttpAnswer begun, store_->Send("POST", name_, {{"uploads", ""}}));
      id_ = FirstElement(begun.body, "UploadId");
      if (begun.status != 200 || id_.empty()) return AnswerError(begun, "write", name_.url);
    }
    const std::string number = absl::StrCat(tags_.size() + 1);
    WEFT_ASSIGN_OR_RETURN(
        const HttpAnswer answer,
        store_->Send("PUT", name_, {{"partNumber", number}, {"uploadId", id_}}, {}, bytes));
    const auto tag = answer.headers.find("etag");
    if (answer.status != 200 || tag == answer.headers.end())
      return AnswerError(answer, "write", name_.url);
    tags_.push_back(tag->second);
    return absl::OkStatus();
  }

  Status Finish(const std::string& rest) override {
    if (id_.empty()) {
      WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, store_->Send("PUT", name_, {}, {}, rest));
      return answer.status == 200 ? absl::OkStatus() : AnswerError(answer, "write", name_.url);
    }
    if (!rest.empty()) WEFT_RETURN_IF_ERROR(Part(rest));
    std::string parts = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < tags_.size(); ++i) {
      absl::StrAppend(&parts, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>", tags_[i],
                      "</ETag></Part>");
    }
    absl::StrAppend(&parts, "</CompleteMultipartUpload>");
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          store_->Send("POST", name_, {{"uploadId", id_}}, {}, parts));
    if (answer.status != 200 || absl::StrContains(answer.body, "<Error>"))
      return AnswerError(answer, "write", name_.url);
    id_.clear();
    return absl::OkStatus();
  }

  void Abandon() override {
    if (!id_.empty()) store_->Send("DELETE", name_, {{"uploadId", id_}}).status().IgnoreError();
    id_.clear();
  }

 private:
  S3Store* const store_;
  const ObjectName name_;
  std::string id_;
  std::vector<std::string> tags_;
};

StatusOr<std::unique_ptr<ObjectUpload>> S3Store::Upload(const ObjectName& name) {
  return std::make_unique<S3Upload>(this, name);
}

std::string FirstOf(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = Environment(name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

StatusOr<std::unique_ptr<ObjectStore>> OpenS3() {
  std::string region = FirstOf({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = "us-east-1";
  std::string server = FirstOf({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT"});
  if (server.empty()) server = absl::StrCat("https://s3.", region, ".amazonaws.com");
  // S3_ENDPOINT has none.
  if (!absl::StrContains(server, "://")) {
    const char* scheme = Environment("S3_USE_HTTPS") == "0" ? "http://" : "https://";
    server = absl::StrCat(scheme, server);
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectRequests> requests, ObjectRequests::To(server));
  return std::make_unique<S3Store>(
      std::move(requests),
      AwsCredentials{Environment("AWS_ACCESS_KEY_ID"), Environment("AWS_SECRET_ACCESS_KEY"),
                     Environment("AWS_SESSION_TOKEN")},
      std::move(region));
}

}  // namespace weft::storage
