// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/inproc/endpoint.h"

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

#include "base/log.h"
#include "base/threads.h"
#include "weft/transport/inproc/peer.h"

namespace weft::transport::inproc {
namespace {

thread_local const void* io_thread_of = nullptr;

// Who asks to be let in, with the side of the connection that it has made.
struct Request {
  std::shared_ptr<InprocPeer> peer;
  std::string token;
  std::string task;
  std::string address;
  absl::AnyInvocable<bool(Status)> answer;  // from any thread; false if nobody waits for it
};

using Accept = std::function<bool(std::shared_ptr<Request>)>;

// The names of this process and who answers to them. Never destroyed: endpoints may end at exit.
class Names {
 public:
  static Names& Get() {
    static Names* const names = new Names;
    return *names;
  }
  bool Add(const std::string& name, Accept accept) {
    absl::MutexLock lock(&mutex_);
    return accepts_.emplace(name, std::move(accept)).second;
  }
  void Remove(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    accepts_.erase(name);
  }
  Accept Find(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    const auto found = accepts_.find(name);
    return found == accepts_.end() ? Accept() : found->second;
  }
  std::string Fresh() { return absl::StrCat("inproc-", next_.fetch_add(1)); }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Accept> accepts_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> next_{1};
};

class InprocEndpoint final : public Endpoint {
 public:
  InprocEndpoint(EndpointOptions options, FrameHandler* handler)
      : Endpoint(options),
        options_(std::move(options)),
        handler_(handler),
        mailbox_(std::make_shared<Mailbox>(options_.spin_us)),
        io_(std::make_unique<Thread>("transport", [this] { Run(); })) {}
  ~InprocEndpoint() override { Shutdown(); }

  StatusOr<std::string> Listen(const std::string& bind) override;
  void ConnectAsync(const std::string& address, absl::Time deadline, Connected done) override;
  void Shutdown() override;
  bool OnIoThread() const override { return io_thread_of == this; }
  uint64_t refused() const override { return refused_.load(); }

 private:
  struct Dial {
    std::string target;
    absl::Time deadline;
    Connected done;
  };

  void Run();
  absl::Time NextDeadline();
  void ExpireDials();
  void AcceptOne(Request& request);
  void FinishDial(int64_t id, const std::shared_ptr<InprocPeer>& peer, const Status& status);
  bool TakeDial(int64_t id, Dial* dial);
  void Forget();

  const EndpointOptions options_;
  FrameHandler* const handler_;
  const std::shared_ptr<Mailbox> mailbox_;  // shared with the peers that write to it
  std::atomic<uint64_t> refused_{0};

  absl::Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_dial_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<int64_t, Dial> dials_ ABSL_GUARDED_BY(mutex_);

  // The IO thread's.
  absl::flat_hash_set<std::shared_ptr<InprocPeer>> peers_;
  bool ending_ = false;

  std::unique_ptr<Thread> io_;
};

StatusOr<std::string> InprocEndpoint::Listen(const std::string& bind) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return Cancelled("Endpoint is shut down, address ", bind);
  if (!name_.empty()) return FailedPrecondition("Endpoint already listens, address ", name_);
  const std::string name = bind.empty() ? Names::Get().Fresh() : bind;
  const bool added =
      Names::Get().Add(name, [this, mailbox = mailbox_](std::shared_ptr<Request> request) {
        Mailbox::Letter letter;
        letter.work = [this, request = std::move(request)] { AcceptOne(*request); };
        return mailbox->Post(letter);
      });
  if (!added) return Unavailable("Cannot listen: the name is taken, address ", name);
  name_ = name;
  return name;
}

void InprocEndpoint::ConnectAsync(const std::string& address, absl::Time deadline, Connected done) {
  int64_t id = 0;
  std::string own_address;
  {
    absl::MutexLock lock(&mutex_);
    own_address = name_.empty() ? "inproc" : name_;
    if (!stopping_ && deadline > absl::Now()) {
      id = next_dial_++;
      dials_[id] = {address, deadline, std::move(done)};
    }
  }
  if (id == 0 && deadline <= absl::Now()) {
    return done(DeadlineExceeded("Cannot connect in time to ", address));
  }
  if (id == 0) return done(Cancelled("Endpoint is shut down, cannot connect to ", address));
  auto request = std::make_shared<Request>();
  request->peer = std::make_shared<InprocPeer>(options_, handler_, mailbox_);
  request->token = options_.token;
  request->task = options_.task;
  request->address = own_address;
  request->answer = [this, mailbox = mailbox_, peer = request->peer, id](Status status) {
    Mailbox::Letter letter;
    letter.work = [this, peer, id, status] { FinishDial(id, peer, status); };
    return mailbox->Post(letter);
  };
  const Accept accept = Names::Get().Find(address);
  if (!accept || !accept(request)) request->answer(Unavailable("nobody listens there"));
  mailbox_->Wake();  // its next deadline may be nearer now
}

void InprocEndpoint::AcceptOne(Request& request) {
  if (ending_) {
    request.answer(Unavailable("it shuts down"));
    return;
  }
  if (!SameToken(options_.token, request.token)) {
    refused_.fetch_add(1);
    WEFT_LOG_EVERY(WARNING, absl::Seconds(1))
        << "Refused a connection: token of the cluster does not match, task " << request.task;
    request.answer(PermissionDenied("Token of the cluster does not match, task ", request.task));
    return;
  }
  auto peer = std::make_shared<InprocPeer>(options_, handler_, mailbox_);
  std::string own_address;
  {
    absl::MutexLock lock(&mutex_);
    own_address = name_;
  }
  InprocPeer::Link(request.peer, request.address, peer, own_address);
  // First the answer: frames that our handler sends in PeerUp come after it.
  if (!request.answer(absl::OkStatus())) {
    request.peer->GoDown(Cancelled("it shuts down"));
    peer->GoDown(Cancelled("it shuts down"));
    return;
  }
  peers_.insert(peer);
  peer->ComeUp();
}

bool InprocEndpoint::TakeDial(int64_t id, Dial* dial) {
  absl::MutexLock lock(&mutex_);
  const auto found = dials_.find(id);
  if (found == dials_.end()) return false;
  *dial = std::move(found->second);
  dials_.erase(found);
  return true;
}

void InprocEndpoint::FinishDial(int64_t id, const std::shared_ptr<InprocPeer>& peer,
                                const Status& status) {
  Dial dial;
  const bool wanted = TakeDial(id, &dial);
  if (!status.ok()) {
    if (wanted) dial.done(Annotate(status, absl::StrCat("Cannot connect to ", dial.target)));
    return;
  }
  if (!wanted || ending_) {
    peer->Abandon("nobody waits for it any more");
    if (wanted) dial.done(Cancelled("Endpoint is shut down, cannot connect to ", dial.target));
    return;
  }
  peers_.insert(peer);
  peer->ComeUp();
  dial.done(PeerRef(peer));
}

absl::Time InprocEndpoint::NextDeadline() {
  absl::MutexLock lock(&mutex_);
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, dial] : dials_) next = std::min(next, dial.deadline);
  return next;
}

void InprocEndpoint::ExpireDials() {
  std::vector<Dial> expired;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = stopping_ ? absl::InfiniteFuture() : absl::Now();
    for (auto it = dials_.begin(); it != dials_.end();) {
      const auto here = it++;
      if (here->second.deadline > now) continue;
      expired.push_back(std::move(here->second));
      dials_.erase(here);
    }
  }
  for (Dial& dial : expired) {
    if (absl::Now() < dial.deadline) {
      dial.done(Cancelled("Endpoint is shut down, cannot connect to ", dial.target));
    } else {
      dial.done(DeadlineExceeded("Cannot connect in time to ", dial.target));
    }
  }
}

void InprocEndpoint::Run() {
  io_thread_of = this;
  while (true) {
    std::optional<Mailbox::Letter> letter = mailbox_->Take(NextDeadline());
    if (letter.has_value() && letter->peer != nullptr) {
      letter->peer->Deliver(std::move(letter->frame));
    } else if (letter.has_value()) {
      letter->work();
    }
    ExpireDials();
    if (mailbox_->TakeEnded()) Forget();
    absl::MutexLock lock(&mutex_);
    if (stopping_) break;
  }
  ending_ = true;
  const std::vector<std::shared_ptr<InprocPeer>> left(peers_.begin(), peers_.end());
  for (const auto& peer : left)
    peer->Close("the endpoint shuts down", absl::StatusCode::kCancelled);
  std::deque<Mailbox::Letter> letters = mailbox_->Close();
  for (const auto& peer : left) peer->GoDown(Unavailable("the endpoint shuts down"));
  for (Mailbox::Letter& letter : letters) {
    if (letter.work) letter.work();
    letter.frame.Finish(Unavailable("Connection to ", options_.task, " is lost: it shut down"));
  }
  peers_.clear();
  ExpireDials();
}

void InprocEndpoint::Forget() {
  absl::erase_if(peers_, [](const auto& peer) { return peer->is_down(); });
}

void InprocEndpoint::Shutdown() {
  if (OnIoThread()) return;
  std::string name;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      mutex_.Await(absl::Condition(&stopped_));
      return;
    }
    stopping_ = true;
    name = name_;
  }
  if (!name.empty()) Names::Get().Remove(name);
  mailbox_->Wake();
  io_.reset();
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace

StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(const EndpointOptions& options,
                                                 FrameHandler* handler) {
  const Hello hello{options.token, options.task, options.incarnation, options.credit_bytes};
  WEFT_RETURN_IF_ERROR(EncodeHello(hello).status());
  return std::unique_ptr<Endpoint>(std::make_unique<InprocEndpoint>(options, handler));
}

}  // namespace weft::transport::inproc
