// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/reader_kernel.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/strings/escaping.h"

namespace weft::ops::state {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int kWorkField = 4;  // of ReaderBaseState, behind three numbers

// Work that a queue gives at once, or later and elsewhere: the second to come here goes on.
struct Handover {
  std::atomic<bool> one_was_here{false};
  std::optional<StatusOr<Queue::Elements>> work;

  bool IsSecond() { return one_was_here.exchange(true); }
};

}  // namespace

void Reader::Read(const Caller& caller, Ref<Queue> names, FileSystem* files, int64_t most,
                  Done done) {
  std::list<Request> refused;
  bool removed = false;
  bool serves = false;
  {
    absl::MutexLock lock(&mutex_);
    Request& request = requests_.emplace_back();
    request.id = next_id_++;
    request.caller = caller;
    request.names = std::move(names);
    request.files = files;
    request.most = most;
    request.done = std::move(done);
    const auto cancel = [self = Ref<Reader>(this), id = request.id](const Status&) {
      self->Cancel(id);
    };
    removed = removed_;
    if (removed_ ||
        !request.call.Begin(caller, absl::StrCat("its turn at ", DebugString()), cancel)) {
      refused.splice(refused.end(), requests_, std::prev(requests_.end()));
    } else {
      serves = !std::exchange(serving_, true);
    }
  }
  for (Request& request : refused) {
    request.done(removed ? Cancelled(DebugString(), " was removed.")
                         : Cancelled("Reading was cancelled"));
  }
  if (serves) Serve();
}

void Reader::Serve() {
  while (true) {
    int64_t most = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (requests_.empty()) {
        serving_ = false;
        return;
      }
      most = requests_.front().most;
    }
    StatusOr<Records> records = ReadOpenFile(most);
    if (!records.ok() || !records->empty()) {
      FinishFirst(std::move(records));
      continue;
    }
    Caller caller;
    Ref<Queue> names;
    {
      absl::MutexLock lock(&mutex_);
      caller = requests_.front().caller;
      names = requests_.front().names;
    }
    // Not from within the queue's answer: a queue of many empty files would nest as many calls.
    const auto handover = std::make_shared<Handover>();
    names->Dequeue(caller, 1, false,
                   [self = Ref<Reader>(this), handover](StatusOr<Queue::Elements> work) {
                     handover->work = std::move(work);
                     if (!handover->IsSecond()) return;
                     self->TakeWork(*std::move(handover->work));
                     self->Serve();
                   });
    if (!handover->IsSecond()) return;
    TakeWork(*std::move(handover->work));
  }
}

void Reader::TakeWork(StatusOr<Queue::Elements> work) {
  Status status = work.status();
  if (status.ok()) {
    const Queue::Element& tuple = work->front();
    if (tuple.size() != 1 || tuple[0].dtype() != DType::kString || tuple[0].rank() != 0) {
      status = InvalidArgument("Expected string scalars, the names of files, in the queue of ",
                               DebugString());
    } else {
      FileSystem* files = nullptr;
      {
        absl::MutexLock lock(&mutex_);
        files = requests_.front().files;
        work_ = tuple[0].scalar<std::string>();
      }
      StatusOr<std::unique_ptr<RecordSource>> source = open_(files, tuple[0].scalar<std::string>());
      status = source.status();
      if (source.ok()) source_ = *std::move(source);
    }
  }
  if (!status.ok()) FinishFirst(std::move(status));
}

StatusOr<Reader::Records> Reader::ReadOpenFile(int64_t most) {
  Records records;
  bool at_end = false;
  Status status;
  while (source_ != nullptr && !at_end && static_cast<int64_t>(records.size()) < most) {
    Record record;
    const StatusOr<bool> found = source_->Next(&record, &at_end);
    if (!found.ok()) {
      // What cannot be read will not be tried again.
      at_end = true;
      if (records.empty()) status = found.status();
    } else if (*found) {
      records.push_back(std::move(record));
    }
  }
  if (at_end) source_.reset();
  absl::MutexLock lock(&mutex_);
  counts_.works += at_end ? 1 : 0;
  counts_.records += static_cast<int64_t>(records.size());
  WEFT_RETURN_IF_ERROR(status);
  return records;
}

void Reader::FinishFirst(StatusOr<Records> result) {
  std::list<Request> finished;
  {
    absl::MutexLock lock(&mutex_);
    finished.splice(finished.end(), requests_, requests_.begin());
  }
  finished.front().call.Detach();
  finished.front().done(std::move(result));
}

// The first one hears of it from the queue, or ends soon.
void Reader::Cancel(uint64_t id) {
  std::list<Request> finished;
  {
    absl::MutexLock lock(&mutex_);
    for (auto at = requests_.begin(); at != requests_.end(); ++at) {
      if (at->id != id) continue;
      if (at != requests_.begin()) finished.splice(finished.end(), requests_, at);
      break;
    }
  }
  for (Request& request : finished) {
    request.call.Detach();
    request.done(Cancelled("Reading was cancelled"));
  }
}

Reader::Counts Reader::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

Status Reader::Reset() {
  absl::MutexLock lock(&mutex_);
  if (serving_) return FailedPrecondition(DebugString(), " cannot be reset while a step reads it");
  source_.reset();
  counts_ = {};
  work_.clear();
  return absl::OkStatus();
}

Status Reader::CheckStateful() const {
  if (kind_ == "IdentityReader" || kind_ == "WholeFileReader") return absl::OkStatus();
  return Unimplemented("Reader SerializeState: a ", kind_, " stops inside of files");
}

StatusOr<std::string> Reader::SaveState() const {
  WEFT_RETURN_IF_ERROR(CheckStateful());
  absl::MutexLock lock(&mutex_);
  if (serving_) return FailedPrecondition(DebugString(), " cannot be saved while a step reads it");
  std::string state;
  {
    google::protobuf::io::StringOutputStream stream(&state);
    google::protobuf::io::CodedOutputStream out(&stream);  // its end cuts the string to size
    const int64_t numbers[] = {counts_.works, counts_.works, counts_.records};
    for (int field = 1; field <= 3; ++field) {
      const int64_t number = numbers[field - 1];
      if (number != 0) WireFormatLite::WriteInt64(field, number, &out);
    }
    if (!work_.empty()) WireFormatLite::WriteBytes(kWorkField, work_, &out);
  }
  return state;
}

Status Reader::RestoreState(absl::string_view state) {
  WEFT_RETURN_IF_ERROR(CheckStateful());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(state.data()),
                                            static_cast<int>(state.size()));
  int64_t numbers[4] = {};
  std::string work;
  bool is_good = true;
  while (is_good && in.CurrentPosition() < static_cast<int>(state.size())) {
    const uint32_t tag = in.ReadTag();
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field >= 1 && field <= 3) {
      is_good = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_VARINT &&
                WireFormatLite::ReadPrimitive<google::protobuf::int64, WireFormatLite::TYPE_INT64>(
                    &in, reinterpret_cast<google::protobuf::int64*>(&numbers[field]));
    } else if (field == kWorkField) {
      is_good = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
                WireFormatLite::ReadBytes(&in, &work);
    } else {
      is_good = tag != 0 && WireFormatLite::SkipField(&in, tag);
    }
  }
  if (!is_good) {
    return InvalidArgument("Could not parse state for ", kind_, " '", name_,
                           "': ", absl::CHexEscape(state.substr(0, 100)));
  }
  if (numbers[1] < 0 || numbers[2] < 0 || numbers[3] < 0) {
    return InvalidArgument("Unexpected negative value when restoring the state of ", kind_, " '",
                           name_, "'");
  }
  absl::MutexLock lock(&mutex_);
  if (serving_) {
    return FailedPrecondition(DebugString(), " cannot be restored while a step reads it");
  }
  source_.reset();
  counts_ = {.records = numbers[3], .works = numbers[2]};
  work_ = std::move(work);
  return absl::OkStatus();
}

void Reader::Close() {
  std::list<Request> finished;
  {
    absl::MutexLock lock(&mutex_);
    removed_ = true;
    // The first one waits for the queue, which is removed too.
    if (requests_.size() > 1) {
      finished.splice(finished.end(), requests_, std::next(requests_.begin()), requests_.end());
    }
  }
  for (Request& request : finished) {
    request.call.Detach();
    request.done(Cancelled(DebugString(), " was removed."));
  }
}

}  // namespace weft::ops::state
