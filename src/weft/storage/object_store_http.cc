// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"

#include "weft/storage/object_requests.h"
#include "weft/storage/object_store.h"

namespace weft::storage {
namespace {

class HttpStore final : public ObjectStore {
 public:
  explicit HttpStore(std::unique_ptr<ObjectRequests> requests) : requests_(std::move(requests)) {}

  StatusOr<FileStat> Stat(const ObjectName& name) override {
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Send("HEAD", name, {}));
    return StatOfHead(answer, name.url);
  }

  StatusOr<size_t> Read(const ObjectName& name, uint64_t offset, absl::Span<char> buffer) override {
    if (buffer.empty()) return 0;
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer,
                          Send("GET", name, {{"range", RangeHeader(offset, buffer.size())}}));
    return TakeRange(answer, offset, buffer, name.url);
  }

  StatusOr<std::unique_ptr<ObjectUpload>> Upload(const ObjectName& name) override {
    return ReadOnly("write", name);
  }
  // A web server has no folders.
  StatusOr<std::vector<std::string>> List(const ObjectName&, size_t) override {
    return std::vector<std::string>();
  }
  Status Copy(const ObjectName& from, const ObjectName&) override { return ReadOnly("copy", from); }
  Status Delete(const ObjectName& name) override { return ReadOnly("delete", name); }

 private:
  static Status ReadOnly(const char* verb, const ObjectName& name) {
    return PermissionDenied("Cannot ", verb, " '", name.url, "': files of web servers are read");
  }

  StatusOr<HttpAnswer> Send(const char* method, const ObjectName& name,
                            std::vector<std::pair<std::string, std::string>> headers) {
    return requests_->Send([&]() -> StatusOr<HttpCall> {
      // What was written with %XX, or with a query, stays so.
      return HttpCall{.method = method, .path = absl::StrCat("/", name.key), .headers = headers};
    });
  }

  const std::unique_ptr<ObjectRequests> requests_;
};

}  // namespace

StatusOr<std::unique_ptr<ObjectStore>> OpenHttp(const std::string& server) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectRequests> requests, ObjectRequests::To(server));
  return std::make_unique<HttpStore>(std::move(requests));
}

}  // namespace weft::storage
