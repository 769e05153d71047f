// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_join.h"

#include "weft/collective/algorithm_table.h"
#include "weft/collective/reduce.h"

namespace weft::collective {
namespace {

// On all boards: what a cache has room for, and copies cost less than messages.
constexpr int64_t kMostBytesOfRound = int64_t{4} << 20;

absl::string_view ReductionName(const CollectiveCall& call) {
  if (call.mean && call.reduction == ReductionOp::kSum) return "mean";
  switch (call.reduction) {
    case ReductionOp::kSum:
      return "sum";
    case ReductionOp::kProduct:
      return "product";
    case ReductionOp::kMin:
      return "minimum";
    case ReductionOp::kMax:
      return "maximum";
  }
  return "unknown reduction";
}

absl::string_view KindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kReduce:
      return "all-reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kGather:
      return "all-gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kReduce || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kBarrier;
}

// The parts one after the other; a single one as it is.
StatusOr<Tensor> Concat(DType dtype, const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts.front();
  int64_t total = 0;
  for (const Tensor& part : parts) total += part.num_elements();
  WEFT_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(dtype, Shape{total}));
  std::byte* to = all.bytes();
  for (const Tensor& part : parts) {
    if (part.size_bytes() > 0) std::memcpy(to, part.bytes(), part.size_bytes());
    to += part.size_bytes();
  }
  return all;
}

StatusOr<Tensor> Flat(const Tensor& tensor) {
  return tensor.Reshaped(Shape{tensor.num_elements()});
}

std::string HostOf(const CollectiveMember& member) {
  return member.address().substr(0, member.address().rfind(':'));
}

}  // namespace

Membership Membership::Of(const CollectiveMessage& group, const std::string& own_task) {
  Membership all;
  for (const CollectiveMember& member : group.member()) {
    const int rank = all.num_ranks();
    const auto found = std::find(all.tasks.begin(), all.tasks.end(), member.task());
    const auto task = static_cast<size_t>(found - all.tasks.begin());
    if (found == all.tasks.end()) {
      if (member.task() == own_task) all.me = static_cast<int>(task);
      all.tasks.push_back(member.task());
      all.ranks_of_task.emplace_back();
      all.topology.hosts.push_back(HostOf(member));
    }
    all.place.emplace_back(static_cast<int>(task),
                           static_cast<int>(all.ranks_of_task[task].size()));
    all.ranks_of_task[task].push_back(rank);
    all.members.push_back(member);
  }
  all.topology.measured = AlgorithmTable::Told(group, all.topology);
  all.epoch = group.epoch();
  return all;
}

int Membership::RankOf(const std::string& device) const {
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (members[static_cast<size_t>(rank)].device() == device) return rank;
  }
  return -1;
}

std::string SignatureOf(const CollectiveCall& call) {
  if (call.kind == CollectiveKind::kBarrier) return "barrier";
  return absl::StrCat(KindName(call.kind),
                      Reduces(call.kind) ? absl::StrCat(" of the ", ReductionName(call)) : "", ", ",
                      DTypeName(call.dtype), " ", call.shape.ToString());
}

Exchange::Exchange(const Key& key, std::shared_ptr<const Membership> group, ThreadPool* pool)
    : key_(key),
      group_(std::move(group)),
      pool_(pool),
      calls_(group_->ranks_of_task[static_cast<size_t>(group_->me)].size()) {}

Status Exchange::Check(const std::string& signature, const std::string& who) {
  if (signature_.empty()) {
    signature_ = signature;
    signature_of_ = who;
  }
  if (signature_ == signature) return absl::OkStatus();
  return InvalidArgument("Ranks disagree on instance ", std::get<0>(key_), ": ", signature_of_,
                         " computes ", signature_, ", and ", who, " ", signature);
}

Status Exchange::AddCall(int rank, CallRef call) {
  WEFT_RETURN_IF_ERROR(Check(SignatureOf(call->what), call->what.device));
  const auto place = static_cast<size_t>(group_->place[static_cast<size_t>(rank)].second);
  if (calls_[place] != nullptr) {
    return InvalidArgument("Rank ", call->what.device, " came twice to instance ",
                           std::get<0>(key_), " in one step: '", calls_[place]->what.node,
                           "' and '", call->what.node, "'");
  }
  kind_ = call->what.kind;
  const bool gives = call->what.input.IsInitialized();
  if (kind_ == CollectiveKind::kBroadcast && gives) {
    if (root_ >= 0) {
      return InvalidArgument("Instance ", std::get<0>(key_),
                             " has two sources: ", call->what.device, " is the second");
    }
    root_ = group_->me;
  }
  calls_[place] = std::move(call);
  ++num_calls_;
  return absl::OkStatus();
}

Status Exchange::AddPacket(const std::string& task, Packet packet) {
  WEFT_RETURN_IF_ERROR(Check(packet.message.signature(), task));
  const auto found = std::find(group_->tasks.begin(), group_->tasks.end(), task);
  if (found == group_->tasks.end()) {
    return InvalidArgument("A part of instance ", std::get<0>(key_), " came from ", task,
                           ", which is not in the group");
  }
  if (packet.message.round() < 0 ||
      packet.message.round() > 2 * static_cast<int>(group_->tasks.size()) + 64) {
    return InvalidArgument("A part of instance ", std::get<0>(key_), " from ", task,
                           " is of round ", packet.message.round(), ", which there is not");
  }
  turn.fetch_add(1, std::memory_order_relaxed);
  inbox_.try_emplace({packet.message.round(), static_cast<int>(found - group_->tasks.begin())},
                     std::move(packet));
  return absl::OkStatus();
}

int Exchange::Root() const {
  if (root_ >= 0 || kind_ != CollectiveKind::kBroadcast) return root_;
  for (const auto& [from, packet] : inbox_) {
    const int root = packet.message.root();
    if (root >= 0 && root < static_cast<int>(group_->tasks.size())) return root;
  }
  return -1;
}

// All parts of a broadcast count as one round, whatever the sender's place in the tree.
int Exchange::RoundLabel(size_t round) const {
  return kind_ == CollectiveKind::kBroadcast ? 0 : static_cast<int>(round);
}

bool Exchange::RoundIsIn() const {
  const std::vector<Transfer>& receives = schedule_.rounds[round_].receives;
  return std::all_of(receives.begin(), receives.end(), [this](const Transfer& receive) {
    return inbox_.contains({RoundLabel(round_), receive.peer});
  });
}

bool Exchange::HasWork() const {
  if (busy || over) return false;
  switch (stage_) {
    case Stage::kGathering:
      if (!AllHere()) return false;
      // Where nobody else could be the source, that is for Begin to say.
      return kind_ != CollectiveKind::kBroadcast || Root() >= 0 || group_->tasks.size() == 1;
    case Stage::kExchanging:
      return RoundIsIn();
    case Stage::kFinished:
      return false;
  }
  return false;
}

void Exchange::TakeWork() {
  busy = true;
  turn.fetch_add(1, std::memory_order_relaxed);
  if (std::exchange(asleep_, false)) group_->boards->Wake();
  taken_.clear();
  if (stage_ == Stage::kGathering) {
    root_ = Root();
    return;
  }
  for (const Transfer& receive : schedule_.rounds[round_].receives) {
    const auto found = inbox_.find({RoundLabel(round_), receive.peer});
    taken_.emplace(found->first, std::move(found->second));
    inbox_.erase(found);
  }
}

Status Exchange::Do() {
  if (stage_ == Stage::kGathering) {
    WEFT_RETURN_IF_ERROR(Begin());
    stage_ = Stage::kExchanging;
  } else {
    WEFT_RETURN_IF_ERROR(TakeRound());
    ++round_;
  }
  if (round_ < schedule_.rounds.size()) {
    MakeSends();
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(Finish());
  stage_ = Stage::kFinished;
  return absl::OkStatus();
}

Status Exchange::Begin() {
  const CollectiveCall& first = calls_.front()->what;
  dtype_ = first.dtype;
  shape_ = first.shape;
  elements_ = shape_.num_elements();
  WEFT_RETURN_IF_ERROR(LayOut());
  WEFT_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, LocalInputs());
  return FillChunks(inputs);
}

// How many elements there are for whom.
Status Exchange::LayOut() {
  const CollectiveCall& first = calls_.front()->what;
  const int64_t ranks = group_->num_ranks();
  const auto n = static_cast<int>(group_->tasks.size());
  if (Reduces(kind_) && kind_ != CollectiveKind::kBarrier && !CanReduce(dtype_))
    return InvalidArgument("Cannot reduce ", DTypeName(dtype_));
  if (!IsPlain(dtype_)) return InvalidArgument("Cannot exchange ", DTypeName(dtype_));
  if (kind_ == CollectiveKind::kReduceScatter &&
      (shape_.rank() == 0 || shape_.dim(0) % ranks != 0)) {
    return InvalidArgument("Dimension 0 of ", shape_.ToString(), " cannot be split into ", ranks,
                           " equal parts, one for each member of the group");
  }
  if (kind_ == CollectiveKind::kAllToAll && (shape_.rank() == 0 || shape_.dim(0) != ranks)) {
    return InvalidArgument("input to all-to-all first dimension size (",
                           shape_.rank() == 0 ? 0 : shape_.dim(0),
                           ") must be the same as the group size (", ranks, ")");
  }
  if (kind_ == CollectiveKind::kGather && shape_.rank() == 0)
    return InvalidArgument("input to all-gather must have rank 1 at least, got a scalar");
  if (kind_ == CollectiveKind::kBroadcast && root_ < 0)
    return Internal("Instance ", std::get<0>(key_), " found no source for broadcast: of ", ranks,
                    " members all only receive");
  WEFT_ASSIGN_OR_RETURN(int64_t bytes,
                        MultiplySizes(elements_, kind_ == CollectiveKind::kGather ? ranks : 1));
  WEFT_ASSIGN_OR_RETURN(bytes, MultiplySizes(bytes, static_cast<int64_t>(DTypeSize(dtype_))));
  const Algorithm algorithm = ChooseAlgorithm(kind_, bytes, group_->topology, first.algorithm);
  schedule_ = MakeSchedule(kind_, algorithm, group_->topology, group_->me, root_);
  // Of these, every task hears of every other in each round, and keeps nothing as it came.
  on_boards_ = group_->boards != nullptr && n > 1 && bytes <= kMostBytesOfNote &&
               bytes * n <= kMostBytesOfRound &&
               (kind_ == CollectiveKind::kReduce || kind_ == CollectiveKind::kBarrier) &&
               (algorithm == Algorithm::kDirect || algorithm == Algorithm::kParts);
  if (n == 1) schedule_.rounds.clear();
  row_ = kind_ == CollectiveKind::kGather ? elements_ : elements_ / ranks;
  const auto count = [&](int task) {
    return static_cast<int64_t>(group_->ranks_of_task[static_cast<size_t>(task)].size());
  };
  const int num_chunks = schedule_.num_chunks;
  chunk_elements_.resize(static_cast<size_t>(num_chunks));
  chunks_.resize(static_cast<size_t>(num_chunks));
  for (int i = 0; i < num_chunks; ++i) {
    int64_t& size = chunk_elements_[static_cast<size_t>(i)];
    switch (kind_) {
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kGather:
        size = row_ * count(i);
        break;
      case CollectiveKind::kAllToAll:
        size = row_ * count(i / n) * count(i % n);
        break;
      default:
        size = elements_ * (i + 1) / num_chunks - elements_ * i / num_chunks;
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<Tensor>> Exchange::LocalInputs() const {
  std::vector<Tensor> inputs;
  for (const CallRef& call : calls_) {
    if (!call->what.input.IsInitialized()) continue;
    WEFT_ASSIGN_OR_RETURN(inputs.emplace_back(), Flat(call->what.input));
  }
  if (!Reduces(kind_) || inputs.size() < 2) return inputs;
  WEFT_ASSIGN_OR_RETURN(Tensor reduced,
                        Reduce(calls_.front()->what.reduction, absl::MakeConstSpan(inputs), pool_));
  return std::vector<Tensor>{std::move(reduced)};
}

// Of one rank's input, what is for the ranks of `task`.
Tensor Exchange::RowsFor(const Tensor& input, int task) const {
  const std::vector<int>& ranks = group_->ranks_of_task[static_cast<size_t>(task)];
  std::vector<Tensor> rows;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    rows.push_back(input.SliceRows(ranks[i] * row_, (ranks[end - 1] + 1) * row_));
    i = end;
  }
  StatusOr<Tensor> all = Concat(dtype_, rows);
  return all.ok() ? *std::move(all) : Tensor();
}

Status Exchange::FillChunks(const std::vector<Tensor>& inputs) {
  const auto n = static_cast<int>(group_->tasks.size());
  const auto me = static_cast<size_t>(group_->me);
  switch (kind_) {
    case CollectiveKind::kReduceScatter:
      for (int task = 0; task < n; ++task)
        chunks_[static_cast<size_t>(task)] = RowsFor(inputs[0], task);
      break;
    case CollectiveKind::kGather: {
      WEFT_ASSIGN_OR_RETURN(chunks_[me], Concat(dtype_, inputs));
      break;
    }
    case CollectiveKind::kAllToAll:
      for (int task = 0; task < n; ++task) {
        std::vector<Tensor> rows;
        for (const Tensor& input : inputs) rows.push_back(RowsFor(input, task));
        WEFT_ASSIGN_OR_RETURN(chunks_[me * static_cast<size_t>(n) + static_cast<size_t>(task)],
                              Concat(dtype_, rows));
      }
      break;
    case CollectiveKind::kBroadcast:
      if (!inputs.empty()) chunks_[0] = inputs[0];
      return absl::OkStatus();
    default: {
      int64_t begin = 0;
      for (size_t i = 0; i < chunks_.size(); ++i) {
        chunks_[i] = inputs[0].SliceRows(begin, begin + chunk_elements_[i]);
        begin += chunk_elements_[i];
      }
    }
  }
  return absl::OkStatus();
}

void Exchange::MakeSends() {
  const uint64_t told = on_boards_ && !crowded ? Pin() : 0;
  for (const Transfer& transfer : schedule_.rounds[round_].sends) {
    if (on_boards_ && (told >> transfer.peer & 1) != 0) continue;
    Send send{.peer = transfer.peer, .message = {}, .body = {}};
    CollectiveMessage& message = send.message;
    message.set_kind(CollectiveMessage::DATA);
    message.set_instance_key(std::get<0>(key_));
    message.set_ordinal(std::get<1>(key_));
    message.set_frame(std::get<2>(key_));
    message.set_iteration(std::get<3>(key_));
    message.set_round(RoundLabel(round_));
    message.set_signature(signature_);
    message.set_root(root_);
    for (int i = transfer.first; i < transfer.first + transfer.count; ++i) {
      if (chunk_elements_[static_cast<size_t>(i)] > 0)
        send.body.push_back(chunks_[static_cast<size_t>(i)]);
    }
    sends_.push_back(std::move(send));
  }
}

// Chunk `chunk` of what came.
StatusOr<Tensor> Exchange::Part(const Packet& packet, const Transfer& transfer, int chunk) const {
  int64_t before = 0;
  int64_t total = 0;
  for (int i = transfer.first; i < transfer.first + transfer.count; ++i) {
    if (i == chunk) before = total;
    total += chunk_elements_[static_cast<size_t>(i)];
  }
  if (packet.note.has_value()) {
    total = elements_;
    before = elements_ * chunk / schedule_.num_chunks;
  }
  const Tensor& body = packet.note.has_value() ? packet.note->whole : packet.body;
  const size_t size = DTypeSize(dtype_);
  const size_t expected = static_cast<size_t>(total) * size;
  const size_t there = body.IsInitialized() ? body.size_bytes() : 0;
  if (there != expected) {
    return InvalidArgument("A part of instance ", std::get<0>(key_), " from ",
                           group_->tasks[static_cast<size_t>(transfer.peer)], " has ", there,
                           " bytes, expected ", expected);
  }
  const Shape shape{chunk_elements_[static_cast<size_t>(chunk)]};
  if (shape.num_elements() == 0) return Tensor::Allocate(dtype_, shape);
  const auto offset = static_cast<size_t>(body.bytes() - body.buffer()->data()) +
                      static_cast<size_t>(before) * size;
  return Tensor(dtype_, shape, body.buffer(), offset);
}

Status Exchange::TakeRound() {
  const Round& round = schedule_.rounds[round_];
  std::map<int, std::vector<std::pair<int, Tensor>>> parts;  // by chunk: from whom
  for (const Transfer& receive : round.receives) {
    const Packet& packet = taken_.at({RoundLabel(round_), receive.peer});
    for (int chunk = receive.first; chunk < receive.first + receive.count; ++chunk) {
      WEFT_ASSIGN_OR_RETURN(Tensor part, Part(packet, receive, chunk));
      parts[chunk].emplace_back(receive.peer, std::move(part));
    }
  }
  for (auto& [chunk, terms] : parts) {
    Tensor& own = chunks_[static_cast<size_t>(chunk)];
    if (!round.reduces) {
      if (kind_ != CollectiveKind::kReduce || chunks_.size() == 1) {
        own = std::move(terms.front().second);
        continue;
      }
      WEFT_ASSIGN_OR_RETURN(own, RoomFor(chunk));
      CopyInto(terms.front().second, pool_, &own);
      continue;
    }
    terms.emplace_back(group_->me, std::move(own));
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Tensor> ordered;
    for (auto& [task, term] : terms) ordered.push_back(std::move(term));
    WEFT_ASSIGN_OR_RETURN(own, ReduceTerms(chunk, ordered, IsLastReduction()));
  }
  for (const auto& [from, packet] : taken_) {
    if (packet.note.has_value()) group_->boards->Return(from.second, *packet.note);
  }
  taken_.clear();
  return absl::OkStatus();
}

// Where the chunk has its place in the result, so that nothing is joined at the end.
StatusOr<Tensor> Exchange::RoomFor(int chunk) {
  if (!out_.IsInitialized()) {
    WEFT_ASSIGN_OR_RETURN(out_, Tensor::Allocate(dtype_, Shape{elements_}));
  }
  const int64_t n = schedule_.num_chunks;
  return out_.SliceRows(elements_ * chunk / n, elements_ * (chunk + 1) / n);
}

// What a task reduces last is whole: others take it as it is.
bool Exchange::IsLastReduction() const {
  for (size_t later = round_ + 1; later < schedule_.rounds.size(); ++later) {
    if (schedule_.rounds[later].reduces && !schedule_.rounds[later].receives.empty()) return false;
  }
  return true;
}

StatusOr<Tensor> Exchange::ReduceTerms(int chunk, absl::Span<const Tensor> terms, bool is_whole) {
  const CollectiveCall& first = calls_.front()->what;
  if (kind_ != CollectiveKind::kReduce) return Reduce(first.reduction, terms, pool_);
  const int divisor = is_whole && first.mean ? group_->num_ranks() : 1;
  WEFT_ASSIGN_OR_RETURN(Tensor out, RoomFor(chunk));
  WEFT_RETURN_IF_ERROR(ReduceInto(first.reduction, terms, divisor, pool_, &out));
  return out;
}

Status Exchange::Finish() {
  results_.resize(calls_.size());
  switch (kind_) {
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kBarrier:
      return FinishReduce();
    default:
      for (size_t i = 0; i < calls_.size(); ++i) {
        // All ranks of a gather get the same bytes.
        if (i > 0 && kind_ == CollectiveKind::kGather) {
          results_[i] = results_[0];
          continue;
        }
        WEFT_ASSIGN_OR_RETURN(results_[i], Assemble(static_cast<int>(i)));
        if (calls_[i]->what.mean) Divide(&results_[i], group_->num_ranks());
      }
  }
  chunks_.clear();
  return absl::OkStatus();
}

Status Exchange::FinishReduce() {
  Tensor all = std::move(out_);
  if (!all.IsInitialized()) {
    WEFT_ASSIGN_OR_RETURN(all, Concat(dtype_, chunks_));
  }
  chunks_.clear();
  const CollectiveCall& first = calls_.front()->what;
  const bool is_alone = schedule_.rounds.empty();
  if (is_alone && first.mean && kind_ == CollectiveKind::kReduce && group_->num_ranks() > 1) {
    if (!all.HasOneRef()) {
      WEFT_ASSIGN_OR_RETURN(all, all.Clone());
    }
    Divide(&all, group_->num_ranks());
  }
  WEFT_ASSIGN_OR_RETURN(const Tensor shaped, all.Reshaped(shape_));
  for (Tensor& result : results_) result = shaped;
  return absl::OkStatus();
}

StatusOr<Tensor> Exchange::Assemble(int local) const {
  const auto n = group_->tasks.size();
  const auto me = static_cast<size_t>(group_->me);
  Shape shape = shape_;
  std::vector<Tensor> rows;
  if (kind_ == CollectiveKind::kReduceScatter) {
    shape.SetDim(0, shape.dim(0) / group_->num_ranks());
    rows.push_back(chunks_[me].SliceRows(local * row_, (local + 1) * row_));
  } else {
    const auto width = static_cast<int64_t>(group_->ranks_of_task[me].size());
    for (const auto& [task, index] : group_->place) {
      const auto from = static_cast<size_t>(task);
      const bool gathers = kind_ == CollectiveKind::kGather;
      const Tensor& chunk = gathers ? chunks_[from] : chunks_[from * n + me];
      const int64_t row = gathers ? index : index * width + local;
      rows.push_back(chunk.SliceRows(row * row_, (row + 1) * row_));
    }
    if (kind_ == CollectiveKind::kGather) {
      WEFT_ASSIGN_OR_RETURN(const int64_t all, MultiplySizes(shape.dim(0), group_->num_ranks()));
      shape.SetDim(0, all);
    }
  }
  WEFT_ASSIGN_OR_RETURN(Tensor flat, Concat(dtype_, rows));
  if (calls_[static_cast<size_t>(local)]->what.mean) {
    WEFT_ASSIGN_OR_RETURN(flat, flat.Clone());
  }
  return flat.Reshaped(shape);
}

std::vector<std::string> Exchange::CameAlone() const {
  std::vector<std::string> tasks;
  for (const auto& [from, packet] : inbox_) {
    const std::string& task = group_->tasks[static_cast<size_t>(from.second)];
    if (num_calls_ == 0 && std::find(tasks.begin(), tasks.end(), task) == tasks.end())
      tasks.push_back(task);
  }
  return tasks;
}

std::string Exchange::Awaited() const {
  std::vector<std::string> awaited;
  if (stage_ == Stage::kGathering) {
    const std::vector<int>& ranks = group_->ranks_of_task[static_cast<size_t>(group_->me)];
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i] == nullptr)
        awaited.push_back(group_->members[static_cast<size_t>(ranks[i])].device());
    }
    if (awaited.empty()) awaited.push_back("the source");
  } else if (stage_ == Stage::kExchanging && !busy && round_ < schedule_.rounds.size()) {
    for (const Transfer& receive : schedule_.rounds[round_].receives) {
      if (!inbox_.contains({RoundLabel(round_), receive.peer}))
        awaited.push_back(group_->tasks[static_cast<size_t>(receive.peer)]);
    }
  }
  return absl::StrJoin(awaited, ", ");
}

}  // namespace weft::collective
