// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/log_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"

#include "base/files.h"
#include "platform/apiserver/container_choice.h"
#include "platform/apiserver/object_requests.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(100);
constexpr absl::Duration kBusyPeriod = absl::Milliseconds(5);
constexpr size_t kBlock = 256 << 10;
constexpr size_t kMostUnsent = 2 << 20;

struct LogQuery {
  std::string container;
  bool follows = false;
  bool is_previous = false;
  bool with_times = false;
  int64_t tail_lines = -1;
  int64_t limit_bytes = INT64_MAX;
  absl::Time since = absl::InfinitePast();
};

StatusOr<LogQuery> ReadLogQuery(const ApiRequest& request, absl::Time now) {
  LogQuery query;
  query.container = request.Query("container");
  query.follows = request.Flag("follow");
  query.is_previous = request.Flag("previous");
  query.with_times = request.Flag("timestamps");
  int64_t since_seconds = -1;
  for (const auto& [name, target] :
       {std::pair{"tailLines", &query.tail_lines}, std::pair{"limitBytes", &query.limit_bytes},
        std::pair{"sinceSeconds", &since_seconds}}) {
    const std::string text = request.Query(name);
    if (!text.empty() && (!absl::SimpleAtoi(text, target) || *target < 0)) {
      return ApiError(400, "BadRequest",
                      absl::StrCat("invalid ", name, " \"", text, "\": a whole number is allowed"));
    }
  }
  if (since_seconds >= 0) query.since = now - absl::Seconds(since_seconds);
  if (const std::string time = request.Query("sinceTime"); !time.empty()) {
    query.since = ParseObjectTime(time);
    if (query.since == absl::InfinitePast()) {
      return ApiError(400, "BadRequest",
                      absl::StrCat("invalid sinceTime \"", time, "\": RFC 3339 is allowed"));
    }
  }
  return query;
}

bool HasTerminated(const Json& pod, const std::string& container) {
  if (IsFinishedPod(pod)) return true;
  const Json* const statuses = FindField(pod, {"status", "containerStatuses"});
  if (statuses == nullptr) return false;
  return std::any_of(statuses->items().begin(), statuses->items().end(), [&](const Json& status) {
    return StringField(status, {"name"}) == container &&
           FindField(status, {"state", "terminated"}) != nullptr;
  });
}

// One reader of one file; used by one timer or request at a time.
class LogStream : public std::enable_shared_from_this<LogStream> {
 public:
  LogStream(PodLookup find_pod, TimerQueue* timers, LogPath log_path, ObjectName pod,
            LogQuery query, std::shared_ptr<HttpReply> reply)
      : find_pod_(std::move(find_pod)),
        timers_(timers),
        log_path_(std::move(log_path)),
        pod_(std::move(pod)),
        query_(std::move(query)),
        reply_(std::move(reply)) {}

  Status Open(const std::string& path) {
    path_ = path;
    RealFileSystem files;
    WEFT_ASSIGN_OR_RETURN(file_, files.OpenRead(path));
    if (query_.tail_lines < 0) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
    return SeekTail(stat.size_bytes);
  }

  // Sends what there is, then ends or comes again.
  void Pump() {
    // Before reading: what is written until the end is then still read.
    const bool is_last = !query_.follows || IsOver();
    bool is_at_end = false;
    while (reply_->unsent_bytes() < kMostUnsent && !is_at_end) {
      const StatusOr<bool> more = SendBlock();
      if (!more.ok()) return;  // the reply breaks off
      is_at_end = !*more;
    }
    if (sent_ >= query_.limit_bytes || (is_at_end && is_last)) {
      if (!line_.empty()) SendLine(line_);
      reply_->Write(out_);
      reply_->Finish();
      return;
    }
    if (!reply_->IsOpen()) return;
    timers_->Schedule(is_at_end ? kPeriod : kBusyPeriod,
                      [self = shared_from_this()] { self->Pump(); });
  }

 private:
  // To the first of the last lines.
  Status SeekTail(uint64_t size) {
    std::string block(kBlock, '\0');
    int64_t lines = 0;
    offset_ = size;
    for (uint64_t end = size; end > 0;) {
      const uint64_t begin = end > kBlock ? end - kBlock : 0;
      WEFT_ASSIGN_OR_RETURN(const size_t count,
                            file_->ReadAt(begin, absl::MakeSpan(block.data(), end - begin)));
      for (size_t i = count; i > 0; --i) {
        // The last byte of the file ends its last line.
        if (block[i - 1] != '\n' || begin + i == size) continue;
        if (++lines >= query_.tail_lines) {
          offset_ = query_.tail_lines == 0 ? size : begin + i;
          return absl::OkStatus();
        }
      }
      end = begin;
    }
    offset_ = query_.tail_lines == 0 ? size : 0;
    return absl::OkStatus();
  }

  bool IsOver() const {
    const StatusOr<ObjectPtr> pod = find_pod_(pod_);
    if (!pod.ok() || HasTerminated(**pod, query_.container)) return true;
    const StatusOr<std::string> path = log_path_(**pod, query_.container, query_.is_previous);
    return !path.ok() || *path != path_;
  }

  // False at the end of the file.
  StatusOr<bool> SendBlock() {
    std::string block(kBlock, '\0');
    WEFT_ASSIGN_OR_RETURN(const size_t count,
                          file_->ReadAt(offset_, absl::MakeSpan(block.data(), kBlock)));
    offset_ += count;
    absl::string_view rest(block.data(), count);
    for (size_t end = rest.find('\n'); end != absl::string_view::npos; end = rest.find('\n')) {
      line_.append(rest.data(), end);
      SendLine(line_);
      line_.clear();
      rest.remove_prefix(end + 1);
    }
    line_.append(rest.data(), rest.size());
    if (!out_.empty()) reply_->Write(std::exchange(out_, ""));
    return count == kBlock;
  }

  void SendLine(absl::string_view line) {
    const size_t space = line.find(' ');
    if (query_.since != absl::InfinitePast() && space != absl::string_view::npos &&
        ParseObjectTime(line.substr(0, space)) < query_.since) {
      return;
    }
    if (!query_.with_times && space != absl::string_view::npos) line.remove_prefix(space + 1);
    std::string text = absl::StrCat(line, "\n");
    text.resize(std::min<size_t>(
        text.size(), static_cast<size_t>(std::max<int64_t>(0, query_.limit_bytes - sent_))));
    sent_ += static_cast<int64_t>(text.size());
    out_.append(text);
  }

  const PodLookup find_pod_;
  TimerQueue* const timers_;
  const LogPath log_path_;
  const ObjectName pod_;
  const LogQuery query_;
  const std::shared_ptr<HttpReply> reply_;
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;
  int64_t sent_ = 0;
  std::string line_;  // without its end yet
  std::string out_;
};

Status Begin(const PodLookup& find_pod, const Clock* clock, TimerQueue* timers,
             const LogPath& log_path, const ApiRequest& request,
             const std::shared_ptr<HttpReply>& reply) {
  if (request.http.method != "GET") {
    return ApiError(405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
  }
  WEFT_ASSIGN_OR_RETURN(LogQuery query, ReadLogQuery(request, clock->Now()));
  const ObjectName name{request.path.namespace_name, request.path.name};
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod, find_pod(name));
  WEFT_ASSIGN_OR_RETURN(query.container, ChooseContainer(*pod, query.container));
  if (log_path == nullptr) return ApiError(501, "NotImplemented", "no logs are kept here");
  const StatusOr<std::string> path = log_path(*pod, query.container, query.is_previous);
  if (!path.ok()) return ApiError(400, "BadRequest", path.status().message());
  const auto stream =
      std::make_shared<LogStream>(find_pod, timers, log_path, name, std::move(query), reply);
  WEFT_RETURN_IF_ERROR(stream->Open(*path));
  reply->Start(200, "text/plain");
  stream->Pump();
  return absl::OkStatus();
}

}  // namespace

void StreamLog(const PodLookup& find_pod, const Clock* clock, TimerQueue* timers,
               const LogPath& log_path, ApiRequest request, std::shared_ptr<HttpReply> reply) {
  const Status status = Begin(find_pod, clock, timers, log_path, request, reply);
  if (!status.ok()) reply->Send(ErrorResponse(status));
}

}  // namespace weft::platform
