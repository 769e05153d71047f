// SPDX-License-Identifier: Apache-2.0
// What the dialects of object stores share: requests that are repeated, and names in URLs.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "base/files.h"
#include "base/status.h"
#include "net/http_client.h"

namespace weft::storage {

// Thread-safe.
class ObjectRequests {
 public:
  // `server` is "https://host:port/prefix".
  static StatusOr<std::unique_ptr<ObjectRequests>> To(const std::string& server);

  // Repeats what failed on the way or with 429 and 5xx, a few times and slower each time; `make` is
  // called for each. Other answers come back as they are.
  StatusOr<HttpAnswer> Send(absl::FunctionRef<StatusOr<HttpCall>()> make);
  // "host:port" as requests name it.
  const std::string& host() const { return host_; }
  const std::string& path() const { return path_; }

 private:
  ObjectRequests() = default;
  std::string host_;
  std::string path_;
  std::unique_ptr<HttpClient> client_;
};

// Every byte but letters, digits and "-._~" as %XX; '/' stays if `keep_slashes`.
std::string EncodeUrl(absl::string_view text, bool keep_slashes);
// The error of an answer that is not 2xx: by its status, with what the server said.
Status AnswerError(const HttpAnswer& answer, absl::string_view verb, absl::string_view url);
// How many bytes of a ranged answer went into the buffer; the range may lie behind the object's
// end.
StatusOr<size_t> TakeRange(const HttpAnswer& answer, uint64_t offset, absl::Span<char> buffer,
                           absl::string_view url);
std::string RangeHeader(uint64_t offset, size_t size);
// Of "Last-Modified"; the distant past where it cannot be read.
absl::Time ParseHttpTime(absl::string_view text);
// Size and time of an answer to HEAD.
StatusOr<FileStat> StatOfHead(const HttpAnswer& answer, absl::string_view url);
// The variable's value, or "".
std::string Environment(const char* name);

}  // namespace weft::storage
