// SPDX-License-Identifier: Apache-2.0
// Object stores: whole objects by name in buckets, over HTTP. One file a dialect.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "base/files.h"
#include "base/status.h"

namespace weft::storage {

struct ObjectName {
  std::string bucket;
  std::string key;
  std::string url;  // as it was asked for, for messages
};

// One object on its way up. Not thread-safe. It appears with Finish, or not at all.
class ObjectUpload {
 public:
  virtual ~ObjectUpload() = default;
  // At least kPartBytes.
  virtual Status Part(const std::string& bytes) = 0;
  virtual Status Finish(const std::string& rest) = 0;
  // Drops the parts.
  virtual void Abandon() = 0;
};

// Both dialects take parts of this size; S3 asks for 5 MiB, GCS for multiples of 256 KiB.
constexpr size_t kPartBytes = size_t{8} << 20;

// Thread-safe; calls block. Errors as FileSystem's, naming the URL.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // NotFound where there is no such object.
  virtual StatusOr<FileStat> Stat(const ObjectName& name) = 0;
  // Fewer bytes only at the object's end.
  virtual StatusOr<size_t> Read(const ObjectName& name, uint64_t offset,
                                absl::Span<char> buffer) = 0;
  virtual StatusOr<std::unique_ptr<ObjectUpload>> Upload(const ObjectName& name) = 0;
  // What directly follows the key, which is empty or ends in a slash: objects, and with a slash at
  // their end the names that further objects share. At most `limit`, 0 for all.
  virtual StatusOr<std::vector<std::string>> List(const ObjectName& prefix, size_t limit) = 0;
  virtual Status Copy(const ObjectName& from, const ObjectName& to) = 0;
  virtual Status Delete(const ObjectName& name) = 0;
};

// S3's dialect; signed (Signature Version 4) where the environment has AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), else anonymous. AWS_REGION or AWS_DEFAULT_REGION;
// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or S3_ENDPOINT for another server than Amazon's.
StatusOr<std::unique_ptr<ObjectStore>> OpenS3();
// GCS's dialect; with the account of GOOGLE_APPLICATION_CREDENTIALS, else anonymous.
// STORAGE_EMULATOR_HOST for another server than Google's.
StatusOr<std::unique_ptr<ObjectStore>> OpenGcs();
// Read only; the bucket is "http://host:port".
StatusOr<std::unique_ptr<ObjectStore>> OpenHttp(const std::string& server);

}  // namespace weft::storage
