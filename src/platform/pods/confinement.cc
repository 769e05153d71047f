// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/confinement.h"

#include <algorithm>
#include <utility>

#include <sched.h>
#include <signal.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/log.h"
#include "base/process_table.h"
#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kWeighingPeriod = absl::Milliseconds(200);
constexpr int kMoveTries = 4;

int64_t MemoryLimit(const Json& container) {
  const Json* const limit = FindField(container, {"resources", "limits", "memory"});
  return limit == nullptr ? 0 : std::max<int64_t>(0, ParseQuantity(*limit).value_or(0) / 1000);
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrCat((bytes + (int64_t{1} << 19)) >> 20, " MiB");
}

std::string DescribeShare(const ProcessorShare& share, const ProcessorWish& wish,
                          const std::vector<int>& numa_nodes) {
  const char* const whose = wish.job_own > 0 ? " of its job's own" : " of its own";
  std::string words = absl::StrCat("CPU ", FormatProcessors(share.processors),
                                   share.is_own ? whose : " shared with others");
  if (share.is_own) absl::StrAppend(&words, " on NUMA node ", FormatProcessors(numa_nodes));
  const int64_t own = std::max(wish.own, wish.job_own);
  if (own > 0 && !share.is_own)
    absl::StrAppend(&words, " (", own, whose, " would leave none for others)");
  return words;
}

// Its processes: what descends from it, and what its group has besides.
std::set<pid_t> Tree(const std::vector<ProcessEntry>& table, pid_t root) {
  std::set<pid_t> pids = Descendants(table, root);
  for (const ProcessEntry& entry : table) {
    if (entry.group == root) pids.insert(entry.pid);
  }
  pids.insert(root);
  return pids;
}

// False: all of its threads have these processors already.
bool MoveThreads(pid_t pid, const cpu_set_t& wanted) {
  RealFileSystem files;
  bool has_moved = false;
  const auto threads = files.List(absl::StrCat("/proc/", pid, "/task"));
  if (!threads.ok()) return false;
  for (const std::string& thread : *threads) {
    pid_t id = 0;
    cpu_set_t now;
    if (!absl::SimpleAtoi(thread, &id) || ::sched_getaffinity(id, sizeof(now), &now) != 0) continue;
    if (CPU_EQUAL(&now, &wanted)) continue;
    has_moved = ::sched_setaffinity(id, sizeof(wanted), &wanted) == 0 || has_moved;
  }
  return has_moved;
}

}  // namespace

std::vector<int> OurProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

Confinement::~Confinement() { confiner_->Forget(*this); }

std::vector<int> Confinement::processors() const { return applied_; }

std::string Confinement::WhyKilled() const {
  if (!why_killed_.empty()) return why_killed_;
  if (group_ == nullptr || memory_limit_ == 0 || !group_->HasRunOut()) return "";
  return absl::StrCat("it wanted more memory than its limit of ", Mebibytes(memory_limit_));
}

Confiner::Confiner(std::vector<int> processors, ProcessorTopology topology)
    : processors_(std::move(processors), std::move(topology)) {}

Confiner::~Confiner() = default;

void Confiner::Forget(const Confinement& confinement) {
  processors_.Release(confinement.id_);
  running_.erase(confinement.id_);
}

ControlGroups* Confiner::Groups() {
  if (!has_looked_for_groups_) {
    has_looked_for_groups_ = true;
    StatusOr<std::unique_ptr<ControlGroups>> groups = ControlGroups::Open();
    if (groups.ok()) {
      groups_ = *std::move(groups);
    } else {
      WEFT_LOG(INFO) << "Limits of memory are watched " << absl::Seconds(1) / kWeighingPeriod
                     << " times a second, since no control group is ours: "
                     << groups.status().message();
    }
  }
  return groups_.get();
}

std::unique_ptr<Confinement> Confiner::Confine(const Json& pod, const Json& container,
                                               std::string* told) {
  std::unique_ptr<Confinement> made(new Confinement(this, absl::StrCat("run-", next_id_++)));
  const ProcessorWish wish = ReadProcessorWish(pod, container);
  processors_.Take(made->id_, wish);
  const ProcessorShare share = processors_.ShareOf(made->id_);
  if (share.processors != processors_.all()) made->applied_ = share.processors;
  made->memory_limit_ = MemoryLimit(container);
  const bool is_limited = made->memory_limit_ > 0 || (wish.limit_thousandths > 0 && !share.is_own);
  if (is_limited && Groups() != nullptr) {
    StatusOr<std::unique_ptr<ControlGroup>> group =
        Groups()->Make(made->id_, made->memory_limit_, share.is_own ? 0 : wish.limit_thousandths);
    if (group.ok())
      made->group_ = *std::move(group);
    else
      WEFT_LOG(WARNING) << "A container runs without a control group: " << group.status().message();
  }
  std::vector<std::string> words;
  if (!wish.problem.empty()) words.push_back(wish.problem);
  if (wish.limit_thousandths > 0 || wish.job_own > 0) {
    words.push_back(DescribeShare(share, wish, processors_.NumaNodesOf(share.processors)));
  }
  if (made->memory_limit_ > 0) {
    words.push_back(absl::StrCat("at most ", Mebibytes(made->memory_limit_), " of memory, ",
                                 made->group_ == nullptr ? "watched" : "by a control group"));
  }
  *told = absl::StrJoin(words, "; ");
  running_[made->id_] = made.get();
  return made;
}

// Others have taken processors of their own, or given them back.
void Confiner::Move() {
  for (const auto& [id, confinement] : running_) {
    if (confinement->pid_ == 0) continue;
    const std::vector<int> share = processors_.ShareOf(id).processors;
    const bool is_as_wanted =
        confinement->applied_.empty() ? share == processors_.all() : share == confinement->applied_;
    if (is_as_wanted) continue;
    confinement->applied_ = share;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int processor : share) CPU_SET(processor, &wanted);
    // What begins while we look has the processors of the thread that began it.
    for (int i = 0; i < kMoveTries; ++i) {
      bool has_moved = false;
      for (const pid_t pid : Tree(ReadProcessTable(), confinement->pid_))
        has_moved = MoveThreads(pid, wanted) || has_moved;
      if (!has_moved) break;
    }
  }
}

void Confiner::Weigh(absl::Duration monotonic_now) {
  next_weighing_ = monotonic_now + kWeighingPeriod;
  std::vector<ProcessEntry> table;
  for (const auto& [id, confinement] : running_) {
    const int64_t limit = confinement->memory_limit_;
    if (limit == 0 || confinement->group_ != nullptr || confinement->pid_ == 0) continue;
    if (table.empty()) table = ReadProcessTable();
    const std::set<pid_t> tree = Tree(table, confinement->pid_);
    int64_t resident = 0;
    for (const ProcessEntry& entry : table) {
      if (tree.count(entry.pid) != 0) resident += entry.resident_bytes;
    }
    // The bound is quick, the truth is not.
    if (resident <= limit) continue;
    const int64_t held = HeldMemory(tree);
    if (held <= limit) continue;
    confinement->why_killed_ =
        absl::StrCat("it held ", Mebibytes(held), " of memory, its limit is ", Mebibytes(limit));
    for (const pid_t pid : tree) ::kill(pid, SIGKILL);
  }
}

void Confiner::Watch(absl::Duration monotonic_now) {
  Move();
  if (monotonic_now >= next_weighing_) Weigh(monotonic_now);
}

absl::Duration Confiner::due() const {
  const bool weighs = std::any_of(running_.begin(), running_.end(), [](const auto& entry) {
    return entry.second->memory_limit_ > 0 && entry.second->group_ == nullptr;
  });
  return weighs ? next_weighing_ : absl::InfiniteDuration();
}

}  // namespace weft::platform
