// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/object_requests.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "net/socket_address.h"

namespace weft::storage {
namespace {

constexpr int kTries = 6;
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr size_t kMostQuoted = 300;

bool IsWorthRepeating(const StatusOr<HttpAnswer>& answer) {
  if (!answer.ok()) {
    return absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
  }
  return answer->status == 408 || answer->status == 429 || answer->status >= 500;
}

}  // namespace

StatusOr<std::unique_ptr<ObjectRequests>> ObjectRequests::To(const std::string& server) {
  WEFT_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(server));
  std::unique_ptr<ObjectRequests> requests(new ObjectRequests());
  requests->host_ = SocketAddress{url.host, url.port}.ToString();
  requests->path_ = url.path;
  WEFT_ASSIGN_OR_RETURN(requests->client_, HttpClient::Create(server, {}));
  return requests;
}

StatusOr<HttpAnswer> ObjectRequests::Send(absl::FunctionRef<StatusOr<HttpCall>()> make) {
  absl::Duration pause = kFirstPause;
  for (int left = kTries - 1;; --left) {
    WEFT_ASSIGN_OR_RETURN(const HttpCall call, make());
    StatusOr<HttpAnswer> answer = client_->Send(call);
    if (left == 0 || !IsWorthRepeating(answer)) return answer;
    absl::SleepFor(pause);
    pause *= 2;
  }
}

std::string EncodeUrl(absl::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                          (keep_slashes && c == '/');
    if (is_plain) {
      out += c;
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Status AnswerError(const HttpAnswer& answer, absl::string_view verb, absl::string_view url) {
  const std::string text =
      absl::StrCat("Cannot ", verb, " '", url, "': the server answered ", answer.status,
                   answer.body.empty() ? "" : ": ", answer.body.substr(0, kMostQuoted));
  switch (answer.status) {
    case 404:
      return NotFound(text);
    case 401:
    case 403:
      return PermissionDenied(text);
    case 409:
    case 412:
      return FailedPrecondition(text);
    case 507:
      return ResourceExhausted(text);
    default:
      return answer.status == 429 || answer.status >= 500 ? Unavailable(text) : Internal(text);
  }
}

StatusOr<size_t> TakeRange(const HttpAnswer& answer, uint64_t offset, absl::Span<char> buffer,
                           absl::string_view url) {
  if (answer.status == 416) return 0;  // all of it was read
  if (answer.status != 206 && answer.status != 200) return AnswerError(answer, "read", url);
  absl::string_view bytes = answer.body;
  // A server without ranges sends the whole.
  if (answer.status == 200) bytes.remove_prefix(std::min<uint64_t>(offset, bytes.size()));
  const size_t count = std::min(bytes.size(), buffer.size());
  if (count > 0) std::memcpy(buffer.data(), bytes.data(), count);
  return count;
}

std::string RangeHeader(uint64_t offset, size_t size) {
  return absl::StrCat("bytes=", offset, "-", offset + size - 1);
}

absl::Time ParseHttpTime(absl::string_view text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error) ? time
                                                                           : absl::UnixEpoch();
}

StatusOr<FileStat> StatOfHead(const HttpAnswer& answer, absl::string_view url) {
  if (answer.status / 100 != 2) return AnswerError(answer, "stat", url);
  FileStat stat;
  const auto length = answer.headers.find("content-length");
  if (length == answer.headers.end() || !absl::SimpleAtoi(length->second, &stat.size_bytes)) {
    return Unavailable("The server does not say how long '", url, "' is");
  }
  const auto modified = answer.headers.find("last-modified");
  stat.modified =
      modified == answer.headers.end() ? absl::UnixEpoch() : ParseHttpTime(modified->second);
  return stat;
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace weft::storage
