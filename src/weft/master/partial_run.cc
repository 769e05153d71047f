// SPDX-License-Identifier: Apache-2.0
#include "weft/master/partial_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "weft/step/partial_ends.h"
#include "weft/step/session_graph.h"

namespace weft::master {

PartialRun::PartialRun(const std::vector<std::string>& feeds,
                       const std::vector<std::string>& fetches, StepRunner* runner)
    : runner_(runner), feed_order_(feeds) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& feed : feeds) feeds_.emplace(feed, false);
  for (const std::string& fetch : fetches) fetches_.try_emplace(fetch);
}

void PartialRun::WhenReady(absl::AnyInvocable<void(const Status&)> ready) {
  absl::MutexLock lock(&mutex_);
  ready_ = std::move(ready);
}

void PartialRun::Begin(PartialStart start) {
  absl::AnyInvocable<void(const Status&)> ready;
  std::vector<std::string> fetches;
  {
    absl::MutexLock lock(&mutex_);
    start_ = start;
    ready = std::exchange(ready_, nullptr);
    for (const auto& fetch : fetches_) fetches.push_back(fetch.first);
  }
  for (const std::string& name : fetches) {
    start.rendezvous->Receive(
        step::PartialFetchKey(start.client_device, name),
        [self = shared_from_this(), name](StatusOr<Tensor> value, bool is_dead) {
          self->Arrived(name, std::move(value), is_dead);
        });
  }
  if (ready) ready(absl::OkStatus());
}

void PartialRun::Arrived(const std::string& name, StatusOr<Tensor> value, bool is_dead) {
  std::list<Finished> finished;
  {
    absl::MutexLock lock(&mutex_);
    Fetch& fetch = fetches_[name];
    if (value.ok() && !is_dead) {
      fetch.value = *std::move(value);
      fetch.has_value = true;
    } else if (failure_.ok()) {
      failure_ = value.ok() ? InvalidArgument("The tensor returned for ", name, " was not valid.")
                            : value.status();
    }
    finished = TakeFinished();
  }
  Tell(std::move(finished));
}

void PartialRun::End(StatusOr<StepResult> result) {
  absl::AnyInvocable<void(const Status&)> ready;
  std::list<Finished> finished;
  {
    absl::MutexLock lock(&mutex_);
    has_ended_ = true;
    // The step knows why it failed; its rendezvous was only told.
    if (!result.ok()) failure_ = result.status();
    if (result.ok()) metadata_ = std::move(result->metadata);
    start_.rendezvous.reset();
    ready = std::exchange(ready_, nullptr);
    finished = TakeFinished();
  }
  if (ready) ready(result.status());
  Tell(std::move(finished));
}

Status PartialRun::Admit(const std::vector<step::Feed>& feeds,
                         const std::vector<std::string>& fetches) {
  for (const step::Feed& feed : feeds) {
    const auto found = feeds_.find(feed.first);
    if (found == feeds_.end()) {
      return InvalidArgument("The feed ", feed.first, " was not specified in partial_run_setup.");
    }
    if (found->second) return InvalidArgument("The feed ", feed.first, " has already been fed.");
    const auto at = std::find(feed_order_.begin(), feed_order_.end(), feed.first);
    const auto index = static_cast<size_t>(at - feed_order_.begin());
    if (index < start_.feed_shapes.size()) {
      WEFT_RETURN_IF_ERROR(step::CheckFeeds({start_.feed_shapes[index]}, {feed}));
    }
  }
  for (const std::string& fetch : fetches) {
    const auto found = fetches_.find(fetch);
    if (found == fetches_.end()) {
      return InvalidArgument("The fetch ", fetch, " was not specified in partial_run_setup.");
    }
    if (found->second.is_asked) {
      return InvalidArgument("The fetch ", fetch, " has already been fetched.");
    }
  }
  std::vector<std::string> fed, open;
  for (const auto& [name, came] : feeds_) {
    const bool comes = std::any_of(feeds.begin(), feeds.end(),
                                   [&](const step::Feed& feed) { return feed.first == name; });
    (came || comes ? fed : open).push_back(name);
  }
  return runner_->CheckComputable(fetches, fed, open);
}

void PartialRun::Call(std::vector<step::Feed> feeds, std::vector<std::string> fetches, Done done) {
  std::list<Finished> finished;
  Ref<Rendezvous> rendezvous;
  std::string client_device;
  {
    absl::MutexLock lock(&mutex_);
    Status admitted = has_ended_ && !failure_.ok() ? failure_ : Admit(feeds, fetches);
    if (!admitted.ok()) {
      finished.push_back({std::move(done), std::move(admitted)});
    } else {
      for (const step::Feed& feed : feeds) feeds_[feed.first] = true;
      for (const std::string& fetch : fetches) fetches_[fetch].is_asked = true;
      const bool is_last =
          std::all_of(feeds_.begin(), feeds_.end(), [](const auto& feed) { return feed.second; }) &&
          std::all_of(fetches_.begin(), fetches_.end(),
                      [](const auto& fetch) { return fetch.second.is_asked; });
      waiting_.push_back({std::move(fetches), is_last, std::move(done)});
      rendezvous = start_.rendezvous;
      client_device = start_.client_device;
    }
  }
  for (step::Feed& feed : feeds) {
    if (!rendezvous) break;
    // Fails only where the step has: then the call is told why by its end.
    rendezvous->Send(step::PartialFeedKey(client_device, feed.first), feed.second, false)
        .IgnoreError();
  }
  {
    absl::MutexLock lock(&mutex_);
    finished.splice(finished.end(), TakeFinished());
  }
  Tell(std::move(finished));
}

std::list<PartialRun::Finished> PartialRun::TakeFinished() {
  std::list<Finished> finished;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto waiting = at++;
    StatusOr<StepResult> result = StepResult();
    if (failure_.ok()) {
      const bool is_there =
          std::all_of(waiting->fetches.begin(), waiting->fetches.end(),
                      [&](const std::string& name)
                          ABSL_NO_THREAD_SAFETY_ANALYSIS { return fetches_[name].has_value; });
      if (!is_there || (waiting->is_last && !has_ended_)) continue;
      for (const std::string& name : waiting->fetches) {
        result->fetches.push_back(std::move(fetches_[name].value));
      }
      if (waiting->is_last) result->metadata = std::move(metadata_);
    } else {
      if (!has_ended_) continue;  // its end says more
      result = failure_;
    }
    finished.push_back({std::move(waiting->done), std::move(result)});
    waiting_.erase(waiting);
  }
  return finished;
}

void PartialRun::Tell(std::list<Finished> finished) {
  for (Finished& one : finished) one.done(std::move(one.result));
}

bool PartialRun::is_over() const {
  absl::MutexLock lock(&mutex_);
  if (!has_ended_) return false;
  return !failure_.ok() || std::all_of(fetches_.begin(), fetches_.end(),
                                       [](const auto& fetch) { return fetch.second.is_asked; });
}

bool PartialRun::waits_for_client() const {
  absl::MutexLock lock(&mutex_);
  return !has_ended_ && waiting_.empty();
}

}  // namespace weft::master
