// SPDX-License-Identifier: Apache-2.0
// UCX's worker as the carrier of an endpoint: messages to other workers, in one thread. Knows ways
// and messages; what frames are in them is the passages' (peer.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

#include "weft/transport/carrier.h"
#include "weft/transport/ucx/library.h"

namespace weft::transport::ucx {

class UcxPassage;
class Worker;

// A longer meta goes with the body.
inline constexpr size_t kMostMetaInHead = 1024;

// In front of each message's data.
struct Envelope {
  uint64_t passage = 0;   // the receiver's number of it
  uint64_t sequence = 0;  // of its lane
  uint8_t is_bulk = 0;
  uint8_t has_meta_in_data = 0;  // it is too long for a header
  uint8_t zero[6] = {};
  std::byte header[kHeaderBytes];
};

// The other end of UCX's, which all connections to one worker share.
struct Way {
  ucp_ep_h endpoint = nullptr;
  Worker* worker = nullptr;
  // UCX tells when the other side is gone; if not, its socket does, and the way ends in peace.
  bool is_watched = true;
  int users = 0;
  size_t messages = 0;  // that UCX has
  int64_t left_ns = 0;  // when the last user left
  Status broken;
};

// A message that UCX has: what lies in it stays until it is done.
struct SendOp {
  UcxPassage* passage = nullptr;  // null: it has ended
  Way* way = nullptr;
  OutFrame frame;
  std::string head;  // Envelope and meta
  std::string flat;  // a body in too many pieces
  std::vector<ucp_dt_iov_t> pieces;
  std::list<SendOp>::iterator place;
};

struct ReceiveOp {
  UcxPassage* passage = nullptr;
  bool is_bulk = false;
  uint64_t sequence = 0;
  Region body;
  std::list<ReceiveOp>::iterator place;
  Worker* worker = nullptr;
};

class Worker final : public Carrier {
 public:
  // Unavailable without UCX, or without any network that it could use.
  static StatusOr<std::unique_ptr<Worker>> Open();
  ~Worker() override;

  uint32_t number() const override { return 1; }
  std::unique_ptr<Passage> NewPassage(PassageUser* user, uint64_t max_body_bytes) override;
  int event_fd() const override { return event_fd_; }
  bool Arm() override;
  bool Progress() override;
  void Drain() override;

  // For passages. IO thread, but for Wake.
  const std::string& address() const { return address_; }
  StatusOr<Way*> Reach(const std::string& address);
  void Leave(Way* way);
  // What waits for messages of `passage`, once.
  std::vector<SendDone> TakeWaiters(const UcxPassage* passage);
  void Forget(UcxPassage* passage);
  // `passage` has something to send.
  void Wake(UcxPassage* passage);
  // Tells the other side's passage that it may come here, too.
  Status Knock(Way* way, uint64_t passage);
  // Takes the op, and tells its passage when it has left.
  Status Send(Way* way, SendOp op);
  // Into op.body.
  Status Receive(void* description, ReceiveOp op, bool* is_whole);
  void Release(void* description);

 private:
  struct Remains {
    std::list<SendOp> sending;
    std::list<ReceiveOp> receiving;
    std::map<std::string, std::unique_ptr<Way>> ways;
    std::vector<std::unique_ptr<Way>> ended;
  };

  explicit Worker(const Library* library) : library_(library) {}
  Status Start();
  Status Failure(absl::string_view what, ucs_status_t status) const;
  static ucs_status_t OnMessage(void* self, const void* header, size_t header_bytes, void* data,
                                size_t bytes, const ucp_am_recv_param_t* param);
  static ucs_status_t OnKnock(void* self, const void* header, size_t header_bytes, void* data,
                              size_t bytes, const ucp_am_recv_param_t* param);
  static void OnKnocked(void* request, ucs_status_t status, void* self);
  Status SetHandler(unsigned message, ucp_am_recv_callback_t callback);
  UcxPassage* FindPassage(const void* header, size_t header_bytes) const;
  static void OnSent(void* request, ucs_status_t status, void* op);
  static void OnReceived(void* request, ucs_status_t status, size_t bytes, void* op);
  static void OnBroken(void* way, ucp_ep_h endpoint, ucs_status_t status);
  void Sent(SendOp* op, ucs_status_t status);
  bool IsDrained() const;
  void FlushWaiting();
  void OpenKnocked();
  void TellBroken();
  ucs_status_t MakeEndpoint(const std::string& address, Way* way);
  void CloseEndpoint(const Way& way);
  void SweepLeft();
  void SweepClosing();

  const Library* const library_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::string address_;
  std::map<std::string, std::unique_ptr<Way>> ways_;
  std::vector<void*> closing_;               // requests
  std::vector<std::unique_ptr<Way>> ended_;  // until those are done
  absl::flat_hash_map<uint64_t, UcxPassage*> passages_;
  std::list<SendOp> sending_;
  std::list<ReceiveOp> receiving_;
  std::vector<uint64_t> knocked_;  // passages to be opened
  bool any_left_ = false;          // ways without users
  bool can_watch_ = true;          // ways
  bool any_broken_ = false;

  absl::Mutex mutex_;
  bool is_awake_ ABSL_GUARDED_BY(mutex_) = true;  // the IO thread will look at `waiting_`
  std::vector<UcxPassage*> waiting_ ABSL_GUARDED_BY(mutex_);  // have something to send
};

}  // namespace weft::transport::ucx
