// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "net/json.h"
#include "net/signature.h"
#include "weft/storage/object_requests.h"
#include "weft/storage/object_store.h"

namespace weft::storage {
namespace {

constexpr char kScope[] = "https://www.googleapis.com/auth/devstorage.read_write";

// The account of GOOGLE_APPLICATION_CREDENTIALS: gives tokens, each good for a while. Thread-safe.
class GoogleAccount {
 public:
  // Null where the environment names none.
  static StatusOr<std::unique_ptr<GoogleAccount>> FromEnvironment() {
    const std::string path = Environment("GOOGLE_APPLICATION_CREDENTIALS");
    if (path.empty()) return nullptr;
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, 1 << 20));
    StatusOr<Json> account = Json::Parse(text);
    if (!account.ok()) return Annotate(account.status(), path);
    return std::make_unique<GoogleAccount>(path, *std::move(account));
  }
  GoogleAccount(std::string path, Json account)
      : path_(std::move(path)), account_(std::move(account)) {}

  StatusOr<std::string> Token() {
    absl::MutexLock lock(&mutex_);
    if (absl::Now() + absl::Minutes(2) < good_until_) return token_;
    WEFT_ASSIGN_OR_RETURN(const std::string form, Form());
    const std::string where = Text("token_uri", "https://oauth2.googleapis.com/token");
    const size_t slash = where.find('/', where.find("://") + 3);
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectRequests> requests,
                          ObjectRequests::To(where.substr(0, slash)));
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, requests->Send([&]() -> StatusOr<HttpCall> {
      return HttpCall{.method = "POST",
                      .path = slash == std::string::npos ? "/" : where.substr(slash),
                      .headers = {{"content-type", "application/x-www-form-urlencoded"}},
                      .body = form};
    }));
    if (answer.status != 200) return AnswerError(answer, "log in for", path_);
    WEFT_ASSIGN_OR_RETURN(const Json reply, Json::Parse(answer.body));
    WEFT_ASSIGN_OR_RETURN(const Json* token, reply.At("access_token"));
    WEFT_ASSIGN_OR_RETURN(token_, token->AsString());
    const Json* const seconds = reply.Find("expires_in");
    const int64_t good_for = seconds == nullptr ? 3600 : seconds->AsInt().value_or(3600);
    good_until_ = absl::Now() + absl::Seconds(good_for);
    return token_;
  }

 private:
  std::string Text(const char* name, const char* otherwise = "") const {
    const Json* const value = account_.Find(name);
    return value == nullptr ? otherwise : value->AsString().value_or(otherwise);
  }

  // What asks for a token.
  StatusOr<std::string> Form() const {
    if (Text("type") == "authorized_user") {
      return absl::StrCat(
          "grant_type=refresh_token&client_id=", EncodeUrl(Text("client_id"), false),
          "&client_secret=", EncodeUrl(Text("client_secret"), false),
          "&refresh_token=", EncodeUrl(Text("refresh_token"), false));
    }
    if (Text("type") != "service_account") {
      return InvalidArgument(path_, ": accounts of type '", Text("type"),
                             "' are not known, only service_account and authorized_user");
    }
    const int64_t now = absl::ToUnixSeconds(absl::Now());
    Json claim;
    claim.Set("iss", Text("client_email"));
    claim.Set("scope", kScope);
    claim.Set("aud", Text("token_uri", "https://oauth2.googleapis.com/token"));
    claim.Set("iat", now);
    claim.Set("exp", now + 3600);
    const std::string signing =
        absl::StrCat(absl::WebSafeBase64Escape(R"({"alg":"RS256","typ":"JWT"})"), ".",
                     absl::WebSafeBase64Escape(claim.Dump()));
    StatusOr<std::string> signature = SignRs256(Text("private_key"), signing);
    if (!signature.ok()) return Annotate(signature.status(), path_);
    return absl::StrCat(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=", signing, ".",
        absl::WebSafeBase64Escape(*signature));
  }

  const std::string path_;
  const Json account_;
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time good_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

class GcsStore final : public ObjectStore {
 public:
  GcsStore(std::unique_ptr<ObjectRequests> requests, std::unique_ptr<GoogleAccount> account)
      : requests_(std::move(requests)), account_(std::move(account)) {}

  using Pairs = std::vector<std::pair<std::string, std::string>>;

  StatusOr<HttpAnswer> Send(const std::string& method, const std::string& path,
                            const Pairs& headers = {}, const std::string& body = "") {
    return requests_->Send([&]() -> StatusOr<HttpCall> {
      HttpCall call{.method = method, .path = path, .headers = headers, .body = body};
      if (account_ != nullptr) {
        WEFT_ASSIGN_OR_RETURN(const std::string token, account_->Token());
        call.headers.emplace_back("authorization", absl::StrCat("Bearer ", token));
      }
      return call;
    });
  }

  StatusOr<FileStat> Stat(const ObjectName& name) override {
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("GET", PathOf(name)));
    if (answer.status != 200) return AnswerError(answer, "stat", name.url);
    WEFT_ASSIGN_OR_RETURN(const Json object, Json::Parse(answer.body));
    WEFT_ASSIGN_OR_RETURN(const Json* size, object.At("size"));
    FileStat stat;
    const std::string digits = size->AsString().value_or("");
    if (!absl::SimpleAtoi(digits, &stat.size_bytes))
      return Unavailable("The server does not say how long '", name.url, "' is");
    stat.modified = absl::UnixEpoch();
    if (const Json* const updated = object.Find("updated"); updated != nullptr) {
      std::string error;
      absl::Time time;
      if (absl::ParseTime(absl::RFC3339_full, updated->AsString().value_or(""), &time, &error))
        stat.modified = time;
    }
    return stat;
  }

  StatusOr<size_t> Read(const ObjectName& name, uint64_t offset, absl::Span<char> buffer) override {
    if (buffer.empty()) return 0;
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          Send("GET", absl::StrCat(PathOf(name), "?alt=media"),
                               {{"range", RangeHeader(offset, buffer.size())}}));
    return TakeRange(answer, offset, buffer, name.url);
  }

  StatusOr<std::unique_ptr<ObjectUpload>> Upload(const ObjectName& name) override;

  StatusOr<std::vector<std::string>> List(const ObjectName& prefix, size_t limit) override {
    std::set<std::string> found;
    std::string next;
    do {
      std::string path = absl::StrCat("/storage/v1/b/", EncodeUrl(prefix.bucket, false),
                                      "/o?delimiter=%2F&prefix=", EncodeUrl(prefix.key, false));
      if (limit > 0) absl::StrAppend(&path, "&maxResults=", limit + 1);
      if (!next.empty()) absl::StrAppend(&path, "&pageToken=", EncodeUrl(next, false));
      WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("GET", path));
      if (answer.status != 200) return AnswerError(answer, "list", prefix.url);
      WEFT_ASSIGN_OR_RETURN(const Json page, Json::Parse(answer.body));
      const auto add = [&](const std::string& name) {
        const absl::string_view rest = absl::StripPrefix(name, prefix.key);
        if (!rest.empty()) found.emplace(rest);
      };
      if (const Json* const items = page.Find("items"); items != nullptr) {
        for (const Json& item : items->items()) {
          const Json* const name = item.Find("name");
          if (name != nullptr) add(name->AsString().value_or(""));
        }
      }
      if (const Json* const prefixes = page.Find("prefixes"); prefixes != nullptr) {
        for (const Json& name : prefixes->items()) add(name.AsString().value_or(""));
      }
      const Json* const token = page.Find("nextPageToken");
      next = token == nullptr ? "" : token->AsString().value_or("");
    } while (!next.empty() && (limit == 0 || found.size() < limit));
    return std::vector<std::string>(found.begin(), found.end());
  }

  // The server may ask to be called again, until it has copied all.
  Status Copy(const ObjectName& from, const ObjectName& to) override {
    std::string token;
    while (true) {
      std::string path = absl::StrCat(PathOf(from), "/rewriteTo/b/", EncodeUrl(to.bucket, false),
                                      "/o/", EncodeUrl(to.key, false));
      if (!token.empty()) absl::StrAppend(&path, "?rewriteToken=", EncodeUrl(token, false));
      WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                            Send("POST", path, {{"content-type", "application/json"}}, "{}"));
      if (answer.status != 200) return AnswerError(answer, "copy", from.url);
      WEFT_ASSIGN_OR_RETURN(const Json reply, Json::Parse(answer.body));
      const Json* const more = reply.Find("rewriteToken");
      const Json* const done = reply.Find("done");
      if (more == nullptr || (done != nullptr && done->AsBool().value_or(true)))
        return absl::OkStatus();
      token = more->AsString().value_or("");
    }
  }

  Status Delete(const ObjectName& name) override {
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("DELETE", PathOf(name)));
    return answer.status / 100 == 2 ? absl::OkStatus() : AnswerError(answer, "delete", name.url);
  }

 private:
  static std::string PathOf(const ObjectName& name) {
    return absl::StrCat("/storage/v1/b/", EncodeUrl(name.bucket, false), "/o/",
                        EncodeUrl(name.key, false));
  }

  const std::unique_ptr<ObjectRequests> requests_;
  const std::unique_ptr<GoogleAccount> account_;
};

// A small object in one request, a large one in a session of requests that name their ranges.
class GcsUpload final : public ObjectUpload {
 public:
  GcsUpload(GcsStore* store, ObjectName name) : store_(store), name_(std::move(name)) {}

  Status Part(const std::string& bytes) override {
    if (session_.empty()) WEFT_RETURN_IF_ERROR(Begin());
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Put(bytes, "*"));
    // "Resume Incomplete": it has them, and waits for more.
    if (answer.status != 308) return AnswerError(answer, "write", name_.url);
    sent_ += bytes.size();
    return absl::OkStatus();
  }

  Status Finish(const std::string& rest) override {
    StatusOr<HttpAnswer> answer = HttpAnswer();
    if (session_.empty()) {
      answer = store_->Send("POST", PathOf("media"), {{"content-type", "application/octet-stream"}},
                            rest);
    } else {
      answer = Put(rest, absl::StrCat(sent_ + rest.size()));
    }
    WEFT_RETURN_IF_ERROR(answer.status());
    if (answer->status / 100 != 2) return AnswerError(*answer, "write", name_.url);
    session_.clear();
    return absl::OkStatus();
  }

  void Abandon() override {
    if (!session_.empty()) store_->Send("DELETE", session_).status().IgnoreError();
    session_.clear();
  }

 private:
  std::string PathOf(absl::string_view type) const {
    return absl::StrCat("/upload/storage/v1/b/", EncodeUrl(name_.bucket, false),
                        "/o?uploadType=", type, "&name=", EncodeUrl(name_.key, false));
  }

  Status Begin() {
    WEFT_ASSIGN_OR_RETURN(
        const HttpAnswer answer,
        store_->Send("POST", PathOf("resumable"), {{"content-type", "application/json"}}, "{}"));
    const auto location = answer.headers.find("location");
    if (answer.status / 100 != 2 || location == answer.headers.end())
      return AnswerError(answer, "write", name_.url);
    // Of the same server.
    const size_t host = location->second.find("://");
    const size_t slash = location->second.find('/', host == std::string::npos ? 0 : host + 3);
    if (slash == std::string::npos) return AnswerError(answer, "write", name_.url);
    session_ = location->second.substr(slash);
    return absl::OkStatus();
  }

  StatusOr<HttpAnswer> Put(const std::string& bytes, const std::string& total) {
    const std::string range =
        bytes.empty() ? "*" : absl::StrCat(sent_, "-", sent_ + bytes.size() - 1);
    return store_->Send("PUT", session_,
                        {{"content-range", absl::StrCat("bytes ", range, "/", total)}}, bytes);
  }

  GcsStore* const store_;
  const ObjectName name_;
  std::string session_;
  uint64_t sent_ = 0;
};

StatusOr<std::unique_ptr<ObjectUpload>> GcsStore::Upload(const ObjectName& name) {
  return std::make_unique<GcsUpload>(this, name);
}

}  // namespace

StatusOr<std::unique_ptr<ObjectStore>> OpenGcs() {
  std::string server = Environment("STORAGE_EMULATOR_HOST");
  if (server.empty()) server = "https://storage.googleapis.com";
  if (server.find("://") == std::string::npos) server = absl::StrCat("http://", server);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectRequests> requests, ObjectRequests::To(server));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<GoogleAccount> account, GoogleAccount::FromEnvironment());
  return std::make_unique<GcsStore>(std::move(requests), std::move(account));
}

}  // namespace weft::storage
