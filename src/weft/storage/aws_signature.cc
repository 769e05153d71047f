// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/aws_signature.h"

#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "net/signature.h"
#include "weft/storage/object_requests.h"

namespace weft::storage {
namespace {

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

}  // namespace

std::string AwsQuery(const AwsRequest& request) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : request.query)
    encoded.emplace_back(EncodeUrl(name, false), EncodeUrl(value, false));
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded)
    absl::StrAppend(&text, text.empty() ? "" : "&", name, "=", value);
  return text;
}

std::vector<std::pair<std::string, std::string>> SignAws(const AwsRequest& request,
                                                         const AwsCredentials& credentials,
                                                         const std::string& region,
                                                         absl::Time now) {
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string day = time.substr(0, 8);
  const std::string digest = Hex(Sha256(request.body));
  std::map<std::string, std::string> headers(request.headers.begin(), request.headers.end());
  headers["x-amz-content-sha256"] = digest;
  headers["x-amz-date"] = time;
  if (!credentials.token.empty()) headers["x-amz-security-token"] = credentials.token;
  std::map<std::string, std::string> is_signed = headers;
  is_signed["host"] = request.host;
  std::string names;
  std::string canonical =
      absl::StrCat(request.method, "\n", request.path, "\n", AwsQuery(request), "\n");
  for (const auto& [name, value] : is_signed) {
    absl::StrAppend(&canonical, name, ":", value, "\n");
    absl::StrAppend(&names, names.empty() ? "" : ";", name);
  }
  absl::StrAppend(&canonical, "\n", names, "\n", digest);
  const std::string scope = absl::StrCat(day, "/", region, "/s3/aws4_request");
  const std::string to_sign =
      absl::StrCat("AWS4-HMAC-SHA256\n", time, "\n", scope, "\n", Hex(Sha256(canonical)));
  std::string key = absl::StrCat("AWS4", credentials.secret);
  for (const absl::string_view part :
       {absl::string_view(day), absl::string_view(region), absl::string_view("s3"),
        absl::string_view("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  headers["authorization"] =
      absl::StrCat("AWS4-HMAC-SHA256 Credential=", credentials.key_id, "/", scope,
                   ",SignedHeaders=", names, ",Signature=", Hex(HmacSha256(key, to_sign)));
  return {headers.begin(), headers.end()};
}

}  // namespace weft::storage
