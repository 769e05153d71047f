// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/ucx/worker.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "base/log.h"
#include "weft/transport/rdma_adapters.h"
#include "weft/transport/tcp/peer.h"
#include "weft/transport/ucx/peer.h"

namespace weft::transport::ucx {
namespace {

constexpr unsigned kFrameMessage = 1;
constexpr unsigned kKnockMessage = 2;
// From here on the receiver fetches a body to where it shall lie.
constexpr size_t kFetchedBytes = 64 * 1024;
constexpr size_t kMostPieces = 8;
constexpr int kMostRounds = 64;  // of progress, before sockets and deadlines have their turn
constexpr int64_t kLeaveNs = 1'000'000'000;
constexpr int64_t kDrainNs = 2'000'000'000;

// Where the data of a message lies, from the op's last place in memory.
void FillPieces(SendOp* op) {
  Envelope envelope;
  std::memcpy(&envelope, op->head.data(), sizeof(envelope));
  if (envelope.has_meta_in_data != 0) {
    op->pieces.push_back({op->frame.meta.data(), op->frame.meta.size()});
  }
  for (const Region& region : op->frame.body) op->pieces.push_back({region.data, region.size});
  if (op->pieces.size() <= kMostPieces) return;
  for (const ucp_dt_iov_t& piece : op->pieces) {
    op->flat.append(static_cast<const char*>(piece.buffer), piece.length);
  }
  op->pieces = {{op->flat.data(), op->flat.size()}};
}

}  // namespace

StatusOr<std::unique_ptr<Worker>> Worker::Open() {
  WEFT_ASSIGN_OR_RETURN(const Library* const library, LoadLibrary());
  std::unique_ptr<Worker> worker(new Worker(library));
  WEFT_RETURN_IF_ERROR(worker->Start());
  return worker;
}

Status Worker::Failure(absl::string_view what, ucs_status_t status) const {
  return Unavailable("UCX ", what, ": ", library_->status_string(status));
}

Status Worker::Start() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = library_->config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return Failure("cannot read its settings (UCX_...)", status);
  if (ActiveRdmaAdapters().empty() && std::getenv("UCX_ZCOPY_THRESH") == nullptr) {
    // Over TCP then: what UCX 1.13 leaves where it lies there does not survive a peer's death.
    library_->config_modify(config, "ZCOPY_THRESH", "inf");
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  status = library_->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  library_->config_release(config);
  if (status != UCS_OK) return Failure("finds no network (see UCX_TLS, UCX_NET_DEVICES)", status);
  ucp_worker_params_t how = {};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = library_->worker_create(context_, &how, &worker_);
  if (status != UCS_OK) return Failure("cannot start", status);
  WEFT_RETURN_IF_ERROR(SetHandler(kFrameMessage, &Worker::OnMessage));
  WEFT_RETURN_IF_ERROR(SetHandler(kKnockMessage, &Worker::OnKnock));
  status = library_->worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) return Failure("cannot tell of messages", status);
  ucp_worker_attr_t known = {};
  known.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  status = library_->worker_query(worker_, &known);
  if (status != UCS_OK) return Failure("tells no address", status);
  address_.assign(reinterpret_cast<const char*>(known.address), known.address_length);
  library_->worker_release_address(worker_, known.address);
  if (known.max_am_header < sizeof(Envelope) + kMostMetaInHead) {
    return Unavailable("UCX has no room for a frame's header: ", known.max_am_header, " bytes");
  }
  return absl::OkStatus();
}

Status Worker::SetHandler(unsigned message, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message;
  handler.cb = callback;
  handler.arg = this;
  const ucs_status_t status = library_->worker_set_am_recv_handler(worker_, &handler);
  return status == UCS_OK ? absl::OkStatus() : Failure("takes no messages", status);
}

Worker::~Worker() {
  if (!IsDrained()) {
    // UCX 1.13 does not survive to be ended with these: it and what it has stay to the process's
    // end.
    new Remains{std::move(sending_), std::move(receiving_), std::move(ways_), std::move(ended_)};
    return;
  }
  if (worker_ != nullptr) library_->worker_destroy(worker_);
  if (context_ != nullptr) library_->cleanup(context_);
}

bool Worker::IsDrained() const {
  return sending_.empty() && receiving_.empty() && closing_.empty() && ways_.empty();
}

std::unique_ptr<Passage> Worker::NewPassage(PassageUser* user, uint64_t max_body_bytes) {
  // Never used again, so that what comes late for a connection is not taken for another's.
  static std::atomic<uint64_t> next{std::random_device()() * uint64_t{0x100000000}};
  const uint64_t number = next.fetch_add(1);
  auto passage = std::make_unique<UcxPassage>(this, number, user, max_body_bytes);
  passages_[number] = passage.get();
  return passage;
}

// ---- Ways.

StatusOr<Way*> Worker::Reach(const std::string& address) {
  std::unique_ptr<Way>& way = ways_[address];
  if (way != nullptr && !way->broken.ok()) return way->broken;
  if (way == nullptr) {
    auto fresh = std::make_unique<Way>();
    fresh->worker = this;
    fresh->is_watched = can_watch_;
    ucs_status_t status = MakeEndpoint(address, fresh.get());
    if (status == UCS_ERR_UNREACHABLE && can_watch_) {
      // Shared memory alone, of which UCX 1.13 does not tell that the other side died.
      fresh->is_watched = can_watch_ = false;
      status = MakeEndpoint(address, fresh.get());
    }
    if (status != UCS_OK) {
      ways_.erase(address);
      return Failure("finds no way there (see UCX_TLS, UCX_NET_DEVICES)", status);
    }
    way = std::move(fresh);
  }
  ++way->users;
  return way.get();
}

ucs_status_t Worker::MakeEndpoint(const std::string& address, Way* way) {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = way->is_watched ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler = {&Worker::OnBroken, way};
  return library_->ep_create(worker_, &params, &way->endpoint);
}

void Worker::Leave(Way* way) {
  if (--way->users > 0) return;
  way->left_ns = tcp::MonotonicNanos();
  any_left_ = true;
}

// A way closes when what UCX has for it has left: an end of UCX 1.13's TCP that still writes does
// not survive that the other side closes as well.
void Worker::SweepLeft() {
  if (!std::exchange(any_left_, false)) return;
  for (auto at = ways_.begin(); at != ways_.end();) {
    const auto current = at++;
    Way* const way = current->second.get();
    if (way->users > 0) continue;
    if (way->messages > 0 && way->broken.ok() && tcp::MonotonicNanos() - way->left_ns < kLeaveNs) {
      any_left_ = true;
      continue;
    }
    CloseEndpoint(*way);
    ended_.push_back(std::move(current->second));
    ways_.erase(current);
  }
}

void Worker::CloseEndpoint(const Way& way) {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = way.is_watched ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  const ucs_status_ptr_t request = library_->ep_close_nbx(way.endpoint, &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) closing_.push_back(request);
}

void Worker::SweepClosing() {
  if (closing_.empty()) return;
  std::erase_if(closing_, [this](void* request) {
    if (library_->request_check_status(request) == UCS_INPROGRESS) return false;
    library_->request_free(request);
    return true;
  });
  if (closing_.empty()) std::erase_if(ended_, [](const auto& way) { return way->messages == 0; });
}

void Worker::OnBroken(void* arg, ucp_ep_h, ucs_status_t status) {
  Way* const way = static_cast<Way*>(arg);
  way->broken = way->worker->Failure("lost the way there", status);
  way->worker->any_broken_ = true;
}

void Worker::TellBroken() {
  if (!std::exchange(any_broken_, false)) return;
  for (const auto& [number, passage] : passages_) {
    if (passage->way() != nullptr && !passage->way()->broken.ok())
      passage->Fail(passage->way()->broken);
  }
}

void Worker::Forget(UcxPassage* passage) {
  passages_.erase(passage->number());
  {
    absl::MutexLock lock(&mutex_);
    std::erase(waiting_, passage);
  }
  // UCX still has these, and what lies in them; whoever waits for them is told now.
  for (ReceiveOp& op : receiving_) {
    if (op.passage == passage) op.passage = nullptr;
  }
  for (SendOp& op : sending_) {
    if (op.passage == passage) op.passage = nullptr;
  }
}

std::vector<SendDone> Worker::TakeWaiters(const UcxPassage* passage) {
  std::vector<SendDone> waiters;
  for (SendOp& op : sending_) {
    if (op.passage != passage || op.frame.done == nullptr) continue;
    waiters.push_back(std::exchange(op.frame.done, nullptr));
  }
  return waiters;
}

// ---- Messages.

Status Worker::Send(Way* way, SendOp unplaced) {
  sending_.push_front(std::move(unplaced));
  SendOp* const op = &sending_.front();
  op->way = way;
  ++way->messages;
  op->place = sending_.begin();
  FillPieces(op);
  size_t bytes = 0;
  for (const ucp_dt_iov_t& piece : op->pieces) bytes += piece.length;
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE;
  param.flags = bytes >= kFetchedBytes ? UCP_AM_SEND_FLAG_RNDV : 0;
  param.cb.send = &Worker::OnSent;
  param.user_data = op;
  param.datatype = op->pieces.size() > 1 ? ucp_dt_make_iov() : ucp_dt_make_contig(1);
  const void* buffer = op->pieces.data();
  size_t count = op->pieces.size();
  if (count <= 1) {
    buffer = count == 0 ? nullptr : op->pieces[0].buffer;
    count = bytes;
  }
  const ucs_status_ptr_t request = library_->am_send_nbx(
      way->endpoint, kFrameMessage, op->head.data(), op->head.size(), buffer, count, &param);
  if (UCS_PTR_IS_ERR(request)) {
    const Status failed = Failure("does not send", UCS_PTR_STATUS(request));
    Sent(op, UCS_PTR_STATUS(request));
    return failed;
  }
  if (request == nullptr) Sent(op, UCS_OK);
  return absl::OkStatus();
}

void Worker::OnSent(void* request, ucs_status_t status, void* arg) {
  SendOp* const op = static_cast<SendOp*>(arg);
  Worker* const worker = op->way->worker;
  worker->library_->request_free(request);
  worker->Sent(op, status);
}

void Worker::Sent(SendOp* op, ucs_status_t status) {
  std::list<SendOp> done;
  done.splice(done.begin(), sending_, op->place);
  --op->way->messages;
  if (op->passage == nullptr) return;
  op->passage->Sent(op, status == UCS_OK ? absl::OkStatus() : Failure("cannot send", status));
}

Status Worker::Receive(void* description, ReceiveOp unplaced, bool* is_whole) {
  unplaced.worker = this;
  receiving_.push_front(std::move(unplaced));
  ReceiveOp* const op = &receiving_.front();
  op->place = receiving_.begin();
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &Worker::OnReceived;
  param.user_data = op;
  const ucs_status_ptr_t request =
      library_->am_recv_data_nbx(worker_, description, op->body.data, op->body.size, &param);
  *is_whole = request == nullptr;
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) return absl::OkStatus();
  receiving_.pop_front();
  if (request == nullptr) return absl::OkStatus();
  return Failure("cannot fetch a frame's body", UCS_PTR_STATUS(request));
}

void Worker::OnReceived(void* request, ucs_status_t status, size_t, void* arg) {
  ReceiveOp* const op = static_cast<ReceiveOp*>(arg);
  Worker* const worker = op->worker;
  worker->library_->request_free(request);
  std::list<ReceiveOp> done;
  done.splice(done.begin(), worker->receiving_, op->place);
  if (op->passage == nullptr) return;
  op->passage->Received(op, status == UCS_OK
                                ? absl::OkStatus()
                                : worker->Failure("cannot fetch a frame's body", status));
}

void Worker::Release(void* description) { library_->am_data_release(worker_, description); }

ucs_status_t Worker::OnMessage(void* arg, const void* header, size_t header_bytes, void* data,
                               size_t bytes, const ucp_am_recv_param_t* param) {
  UcxPassage* const passage = static_cast<Worker*>(arg)->FindPassage(header, header_bytes);
  // Else of a connection that has ended.
  if (passage == nullptr || header_bytes < sizeof(Envelope)) return UCS_OK;
  const bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  return passage->Arrived(absl::MakeConstSpan(static_cast<const std::byte*>(header), header_bytes),
                          data, bytes, is_rendezvous);
}

UcxPassage* Worker::FindPassage(const void* header, size_t header_bytes) const {
  uint64_t number = 0;
  if (header_bytes < sizeof(number)) return nullptr;
  std::memcpy(&number, header, sizeof(number));
  const auto found = passages_.find(number);
  return found == passages_.end() ? nullptr : found->second;
}

Status Worker::Knock(Way* way, uint64_t passage) {
  auto knock = std::make_unique<uint64_t>(passage);
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &Worker::OnKnocked;
  param.user_data = knock.get();
  const ucs_status_ptr_t request = library_->am_send_nbx(way->endpoint, kKnockMessage, knock.get(),
                                                         sizeof(*knock), nullptr, 0, &param);
  if (UCS_PTR_IS_ERR(request)) return Failure("does not send", UCS_PTR_STATUS(request));
  if (request != nullptr) {
    knock.release();  // OnKnocked's
    closing_.push_back(request);
  }
  return absl::OkStatus();
}

// One that cannot be sent comes with a way that breaks. The request goes with the next sweep.
void Worker::OnKnocked(void*, ucs_status_t, void* knock) { delete static_cast<uint64_t*>(knock); }

ucs_status_t Worker::OnKnock(void* arg, const void* header, size_t header_bytes, void*, size_t,
                             const ucp_am_recv_param_t*) {
  Worker* const worker = static_cast<Worker*>(arg);
  const UcxPassage* const passage = worker->FindPassage(header, header_bytes);
  if (passage != nullptr) worker->knocked_.push_back(passage->number());
  return UCS_OK;
}

void Worker::OpenKnocked() {
  for (const uint64_t number : std::exchange(knocked_, {})) {
    const auto found = passages_.find(number);
    if (found != passages_.end()) found->second->Knocked();
  }
}

// ---- The IO thread's round.

void Worker::Wake(UcxPassage* passage) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(passage);
  if (!std::exchange(is_awake_, true)) library_->worker_signal(worker_);
}

bool Worker::Arm() {
  absl::MutexLock lock(&mutex_);
  if (!waiting_.empty()) return false;
  is_awake_ = library_->worker_arm(worker_) != UCS_OK;
  return !is_awake_;
}

bool Worker::Progress() {
  FlushWaiting();
  int rounds = 0;
  while (rounds < kMostRounds && library_->worker_progress(worker_) != 0) ++rounds;
  OpenKnocked();
  SweepLeft();
  SweepClosing();
  TellBroken();
  return rounds > 0;
}

void Worker::FlushWaiting() {
  std::vector<UcxPassage*> waiting;
  {
    absl::MutexLock lock(&mutex_);
    is_awake_ = true;
    waiting.swap(waiting_);
  }
  // None ends in here: what fails is dropped after the round.
  for (UcxPassage* const passage : waiting) passage->SendWaiting();
}

void Worker::Drain() {
  const int64_t end_ns = tcp::MonotonicNanos() + kDrainNs;
  any_left_ = true;
  while (!IsDrained()) {
    if (tcp::MonotonicNanos() > end_ns) {
      WEFT_LOG(WARNING) << "UCX did not give back " << sending_.size() << " messages, "
                        << receiving_.size() << " fetched bodies and " << closing_.size()
                        << " connections before it ended";
      return;
    }
    library_->worker_progress(worker_);
    SweepLeft();
    SweepClosing();
  }
}

}  // namespace weft::transport::ucx
