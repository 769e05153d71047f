// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <unistd.h>

#include "absl/strings/str_format.h"

#include "net/http_server_loop.h"

namespace weft {

absl::string_view HttpReason(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

void HttpMailbox::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void HttpMailbox::Post(Message message) {
  {
    absl::MutexLock lock(&mutex_);
    messages_.push_back(std::move(message));
  }
  Wake();
}

std::vector<HttpMailbox::Message> HttpMailbox::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(messages_, {});
}

void PendingReply::Post(std::string bytes, bool ends, bool breaks) {
  unsent_ += bytes.size();
  if (ends) state_ = State::kDone;
  mailbox_->Post({connection_, std::move(bytes), ends, breaks, nullptr});
}

void PendingReply::Send(HttpResponse response) {
  std::string text = absl::StrCat("HTTP/1.1 ", response.status, " ", HttpReason(response.status),
                                  "\r\nContent-Type: ", response.content_type,
                                  "\r\nContent-Length: ", response.body.size(),
                                  "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store");
  for (const auto& [name, value] : response.headers)
    absl::StrAppend(&text, "\r\n", name, ": ", value);
  absl::StrAppend(&text, "\r\nConnection: ", keep_alive_ ? "keep-alive" : "close", "\r\n\r\n",
                  with_body_ ? absl::string_view(response.body) : "");
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || state_ != State::kWaiting) return;
  Post(std::move(text), true, false);
}

void PendingReply::Start(int status, const std::string& content_type) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || state_ != State::kWaiting) return;
  state_ = State::kStreaming;
  Post(
      absl::StrCat("HTTP/1.1 ", status, " ", HttpReason(status), "\r\nContent-Type: ", content_type,
                   "\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\nConnection: ",
                   keep_alive_ ? "keep-alive" : "close", "\r\n\r\n"),
      false, false);
}

bool PendingReply::Write(absl::string_view chunk) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || state_ != State::kStreaming) return false;
  if (chunk.empty() || !with_body_) return true;
  if (unsent_ + chunk.size() > max_unsent_ && unsent_ > 0) {
    Post("", true, true);
    return false;
  }
  Post(absl::StrCat(absl::StrFormat("%x", chunk.size()), "\r\n", chunk, "\r\n"), false, false);
  return true;
}

void PendingReply::Finish() {
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || state_ != State::kStreaming) return;
  Post(with_body_ ? "0\r\n\r\n" : "", true, false);
}

void PendingReply::Upgrade(const std::vector<std::pair<std::string, std::string>>& headers,
                           TakeConnection take) {
  std::string text = absl::StrCat("HTTP/1.1 101 ", HttpReason(101), "\r\nConnection: Upgrade");
  for (const auto& [name, value] : headers) absl::StrAppend(&text, "\r\n", name, ": ", value);
  text += "\r\n\r\n";
  absl::MutexLock lock(&mutex_);
  if (is_closed_ || state_ != State::kWaiting) return;
  state_ = State::kDone;
  mailbox_->Post({connection_, std::move(text), true, false, std::move(take)});
}

void PendingReply::Abandon() {
  {
    absl::MutexLock lock(&mutex_);
    if (is_closed_ || state_ == State::kDone) return;
    if (state_ == State::kStreaming) {
      Post("", true, true);
      return;
    }
  }
  HttpResponse response;
  response.status = 500;
  response.body = "The request was not answered\n";
  Send(std::move(response));
}

bool PendingReply::IsOpen() const {
  absl::MutexLock lock(&mutex_);
  return !is_closed_ && state_ != State::kDone;
}

size_t PendingReply::unsent_bytes() const {
  absl::MutexLock lock(&mutex_);
  return unsent_;
}

void PendingReply::OnClose(absl::AnyInvocable<void()> callback) {
  {
    absl::MutexLock lock(&mutex_);
    if (!is_closed_) {
      on_close_ = std::move(callback);
      return;
    }
  }
  callback();
}

void PendingReply::Close() {
  absl::AnyInvocable<void()> callback;
  {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return;
    is_closed_ = true;
    callback = std::exchange(on_close_, nullptr);
  }
  if (callback) callback();
}

void PendingReply::Sent(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  unsent_ -= std::min(unsent_, bytes);
}

}  // namespace weft
