// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/collective_link.h"

#include <cstring>
#include <utility>

#include "weft/wire/tensor_frame.h"

namespace weft::worker {
namespace {

using collective::CollectiveMember;
using collective::CollectiveMessage;
using transport::FrameHeader;
using transport::FrameKind;
using transport::Region;

constexpr uint16_t kIsCollective = 1;
// The message itself is the body: it names more members than fit into a frame's meta.
constexpr uint16_t kMessageInBody = 2;
constexpr size_t kMostMessageInMeta = 32 << 10;
// What is computed from so few bytes takes less than to wake a thread for it.
constexpr size_t kLittle = 16 << 10;

StatusOr<Region> RegionOf(const std::string& bytes) {
  WEFT_ASSIGN_OR_RETURN(Region region, wire::AllocateBody(bytes.size()));
  std::memcpy(region.data, bytes.data(), bytes.size());
  return region;
}

}  // namespace

CollectiveLink::CollectiveLink(const std::string& task, uint64_t incarnation, Find find,
                               ThreadPool* setup, ThreadPool* pool)
    : find_(std::move(find)), setup_(setup), pool_(pool), timers_(std::in_place) {
  self_.set_task(task);
  self_.set_incarnation(incarnation);
  self_.set_rank(-1);
}

void CollectiveLink::Attach(collective::Engine* engine, cluster::DataPlane* plane,
                            const std::string& address) {
  engine_ = engine;
  plane_ = plane;
  self_.set_address(address);
}

void CollectiveLink::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  timers_.reset();
}

void CollectiveLink::After(absl::Duration delay, absl::AnyInvocable<void()> what) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_) timers_->Schedule(delay, std::move(what));
}

void CollectiveLink::Learn(const CollectiveMember& member) {
  if (member.address().empty() || member.task() == self_.task()) return;
  plane_->Know({member.task(), member.address(), member.incarnation()});
  absl::MutexLock lock(&mutex_);
  if (!looked_up_.contains(member.task())) known_.insert(member.task());
}

void CollectiveLink::Send(const std::string& task, CollectiveMessage message,
                          std::vector<Tensor> body) {
  Letter letter{std::move(message), std::move(body)};
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    if (!known_.contains(task)) {
      const auto [waiting, is_first] = looked_up_.try_emplace(task);
      waiting->second.push_back(std::move(letter));
      if (is_first) setup_->Schedule([this, task] { LookUp(task); });
      return;
    }
  }
  Post(task, std::move(letter));
}

void CollectiveLink::LookUp(const std::string& task) {
  const StatusOr<cluster::TaskAddress> found = find_(task);
  if (found.ok()) plane_->Know(*found);
  while (true) {
    std::vector<Letter> letters;
    {
      absl::MutexLock lock(&mutex_);
      const auto waiting = looked_up_.find(task);
      letters.swap(waiting->second);
      if (letters.empty() || !found.ok()) {
        looked_up_.erase(waiting);
        if (found.ok()) known_.insert(task);
        break;
      }
    }
    for (Letter& letter : letters) Post(task, std::move(letter));
  }
  if (!found.ok()) TaskLost(task, found.status());
}

void CollectiveLink::Post(const std::string& task, Letter letter) {
  FrameHeader header;
  header.kind = FrameKind::kTensor;
  header.flags = kIsCollective;
  std::string meta = letter.message.SerializeAsString();
  std::vector<Region> body;
  for (const Tensor& part : letter.body) {
    if (part.size_bytes() > 0)
      body.push_back(Region::Of({part.bytes(), part.size_bytes()}, part.buffer()));
  }
  if (meta.size() > kMostMessageInMeta && body.empty()) {
    StatusOr<Region> region = RegionOf(meta);
    if (!region.ok()) return TaskLost(task, region.status());
    header.flags |= kMessageInBody;
    body.push_back(*std::move(region));
    meta.clear();
  }
  plane_->Send(task, header, std::move(meta), std::move(body), [this, task](const Status& sent) {
    if (sent.ok()) return;
    TaskLost(task, Unavailable("Lost ", task, ": ", sent.message()));
  });
}

bool CollectiveLink::Takes(const FrameHeader& header) {
  return header.kind == FrameKind::kTensor && (header.flags & kIsCollective) != 0;
}

Region CollectiveLink::BodyFor(const std::string& task, const FrameHeader& header) {
  StatusOr<Region> body = wire::AllocateBody(header.body_bytes);
  if (body.ok()) return *std::move(body);
  TaskLost(task, body.status());  // what it sent is lost, and with it the exchange
  return Region();
}

void CollectiveLink::Received(const std::string& task, const FrameHeader& header,
                              absl::string_view meta, Region body) {
  News news{.task = task, .lost = {}, .message = {}, .body = {}};
  const bool in_body = (header.flags & kMessageInBody) != 0;
  const absl::string_view bytes =
      in_body ? absl::string_view(reinterpret_cast<const char*>(body.data), body.size) : meta;
  if (!news.message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return TaskLost(task, InvalidArgument("A message of ", task, " is malformed"));
  }
  if (!in_body && body.size > 0) {
    const wire::TensorMeta as{.dtype = DType::kUint8,
                              .shape = Shape{static_cast<int64_t>(body.size)}};
    StatusOr<Tensor> tensor = wire::TensorFromBody(as, body);
    if (!tensor.ok()) return TaskLost(task, tensor.status());
    news.body = *std::move(tensor);
  }
  const bool is_little = news.message.kind() == CollectiveMessage::DATA && body.size <= kLittle;
  Tell(std::move(news), is_little);
}

void CollectiveLink::TaskLost(const std::string& task, const Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    known_.erase(task);
  }
  Tell({.task = task, .lost = why, .message = {}, .body = {}}, /*is_little=*/false);
}

void CollectiveLink::Tell(News news, bool is_little) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    news_.push_back(std::move(news));
    if (telling_) return;
    telling_ = true;
  }
  // At most one on the connection's thread, which others wait for.
  if (!is_little || TellNext()) pool_->Schedule([this] { TellAll(); });
}

void CollectiveLink::TellAll() {
  while (TellNext()) continue;
}

bool CollectiveLink::TellNext() {
  News news;
  {
    absl::MutexLock lock(&mutex_);
    news = std::move(news_.front());
    news_.pop_front();
  }
  if (news.lost.ok()) {
    engine_->Received(news.task, std::move(news.message), std::move(news.body));
  } else {
    engine_->TaskLost(news.task, news.lost);
  }
  absl::MutexLock lock(&mutex_);
  telling_ = !news_.empty();
  return telling_;
}

}  // namespace weft::worker
