// SPDX-License-Identifier: Apache-2.0
// Amazon's Signature Version 4.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace weft::storage {

struct AwsCredentials {
  std::string key_id;
  std::string secret;
  std::string token;  // of a session; may be empty
};

struct AwsRequest {
  std::string method;
  std::string host;                                          // as the request's Host header says it
  std::string path;                                          // encoded
  std::vector<std::pair<std::string, std::string>> query;    // not encoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
};

// "a=b&c=d", encoded and sorted by name.
std::string AwsQuery(const AwsRequest& request);
// The request's headers and those that sign it, without Host.
std::vector<std::pair<std::string, std::string>> SignAws(const AwsRequest& request,
                                                         const AwsCredentials& credentials,
                                                         const std::string& region, absl::Time now);

}  // namespace weft::storage
