// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/schedule.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>

namespace weft::collective {
namespace {

// Below it one round of everything beats several rounds of parts, for as many tasks at the most.
constexpr int64_t kDirectBytes = 32 << 10;
constexpr int kDirectTasks = 8;
// From here on the bytes count and not the rounds.
constexpr int64_t kRingBytes = 512 << 10;

Schedule Direct(int n, int me, int num_chunks, bool reduces) {
  Schedule schedule{.num_chunks = num_chunks, .rounds = {Round{.reduces = reduces}}};
  for (int peer = 0; peer < n; ++peer) {
    if (peer == me) continue;
    schedule.rounds[0].sends.push_back({peer, 0, num_chunks});
    schedule.rounds[0].receives.push_back({peer, 0, num_chunks});
  }
  return schedule;
}

// Chunk i is whole, after the n - 1 rounds, at task i.
void AddRingScatter(int n, int me, Schedule* schedule) {
  for (int round = 1; round < n; ++round) {
    schedule->rounds.push_back({.sends = {{(me + 1) % n, (me - round + n) % n, 1}},
                                .receives = {{(me + n - 1) % n, (me - round - 1 + 2 * n) % n, 1}},
                                .reduces = true});
  }
}

void AddRingGather(int n, int me, Schedule* schedule) {
  for (int round = 0; round + 1 < n; ++round) {
    schedule->rounds.push_back({.sends = {{(me + 1) % n, (me - round + n) % n, 1}},
                                .receives = {{(me + n - 1) % n, (me - round - 1 + n) % n, 1}}});
  }
}

Schedule RingReduce(int n, int me) {
  Schedule schedule{.num_chunks = n, .rounds = {}};
  AddRingScatter(n, me, &schedule);
  AddRingGather(n, me, &schedule);
  return schedule;
}

// Tasks beyond the largest power of two hand their input to one below it and get the result back.
Schedule HalvingDoubling(int n, int me) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  Schedule schedule{.num_chunks = power, .rounds = {}};
  Round fold{.reduces = true};
  Round unfold;
  if (me >= power) {
    fold.sends.push_back({me - power, 0, power});
    unfold.receives.push_back({me - power, 0, power});
  } else if (me + power < n) {
    fold.receives.push_back({me + power, 0, power});
    unfold.sends.push_back({me + power, 0, power});
  }
  if (power < n) schedule.rounds.push_back(std::move(fold));
  std::vector<Round> doubling;
  int first = 0;
  for (int half = power / 2; half >= 1; half /= 2) {
    Round halves{.reduces = true};
    Round doubles;
    if (me < power) {
      const int peer = me ^ half;
      const bool upper = (me & half) != 0;
      const Transfer mine{peer, upper ? first + half : first, half};
      const Transfer others{peer, upper ? first : first + half, half};
      halves.sends.push_back(others);
      halves.receives.push_back(mine);
      doubles.sends.push_back(mine);
      doubles.receives.push_back(others);
      first = mine.first;
    }
    schedule.rounds.push_back(std::move(halves));
    doubling.push_back(std::move(doubles));
  }
  std::move(doubling.rbegin(), doubling.rend(), std::back_inserter(schedule.rounds));
  if (power < n) schedule.rounds.push_back(std::move(unfold));
  return schedule;
}

// Chunk i is reduced by task i from what all have.
Schedule PartsReduce(int n, int me) {
  Schedule schedule{.num_chunks = n, .rounds = {Round{.reduces = true}, Round()}};
  for (int step = 1; step < n; ++step) {
    const int to = (me + step) % n;
    const int from = (me - step + n) % n;
    schedule.rounds[0].sends.push_back({to, to, 1});
    schedule.rounds[0].receives.push_back({from, me, 1});
    schedule.rounds[1].sends.push_back({to, me, 1});
    schedule.rounds[1].receives.push_back({from, from, 1});
  }
  return schedule;
}

// The tasks of each host, first its leader; hosts in the order of their leaders.
std::vector<std::vector<int>> TasksOfHosts(const Topology& topology) {
  std::map<std::string, size_t> number;
  std::vector<std::vector<int>> tasks;
  for (int task = 0; task < topology.num_tasks(); ++task) {
    const auto [it, added] =
        number.emplace(topology.hosts[static_cast<size_t>(task)], tasks.size());
    if (added) tasks.emplace_back();
    tasks[it->second].push_back(task);
  }
  return tasks;
}

Schedule Hierarchical(const Topology& topology, int me) {
  const std::vector<std::vector<int>> hosts = TasksOfHosts(topology);
  const int num_hosts = static_cast<int>(hosts.size());
  int host = 0;
  while (std::find(hosts[static_cast<size_t>(host)].begin(), hosts[static_cast<size_t>(host)].end(),
                   me) == hosts[static_cast<size_t>(host)].end())
    ++host;
  const std::vector<int>& own = hosts[static_cast<size_t>(host)];
  const bool leads = own.front() == me;
  Schedule leaders = RingReduce(num_hosts, host);
  Schedule schedule{.num_chunks = leaders.num_chunks, .rounds = {}};
  Round collect{.reduces = true};
  Round spread;
  if (leads) {
    for (size_t i = 1; i < own.size(); ++i) {
      collect.receives.push_back({own[i], 0, schedule.num_chunks});
      spread.sends.push_back({own[i], 0, schedule.num_chunks});
    }
  } else {
    collect.sends.push_back({own.front(), 0, schedule.num_chunks});
    spread.receives.push_back({own.front(), 0, schedule.num_chunks});
  }
  schedule.rounds.push_back(std::move(collect));
  for (Round& round : leaders.rounds) {
    if (!leads) round = Round();
    for (Transfer& send : round.sends) send.peer = hosts[static_cast<size_t>(send.peer)].front();
    for (Transfer& receive : round.receives)
      receive.peer = hosts[static_cast<size_t>(receive.peer)].front();
    schedule.rounds.push_back(std::move(round));
  }
  schedule.rounds.push_back(std::move(spread));
  return schedule;
}

// A binomial tree: in round r those within 2^r of the root send to those within 2^(r+1). All of it
// counts as one round, in which who is not the root receives before it sends.
Schedule Tree(int n, int me, int root) {
  Schedule schedule{.num_chunks = 1, .rounds = {Round(), Round()}};
  const int place = (me - root + n) % n;
  const auto task = [&](int at) { return (at + root) % n; };
  if (place > 0) {
    const int parent = place - static_cast<int>(std::bit_floor(static_cast<unsigned>(place)));
    schedule.rounds[0].receives.push_back({task(parent), 0, 1});
  }
  const int reach =
      place == 0 ? 1 : static_cast<int>(std::bit_floor(static_cast<unsigned>(place))) * 2;
  for (int step = reach; place + step < n; step *= 2)
    schedule.rounds[1].sends.push_back({task(place + step), 0, 1});
  return schedule;
}

Schedule DirectScatter(int n, int me) {
  Schedule schedule{.num_chunks = n, .rounds = {Round{.reduces = true}}};
  for (int peer = 0; peer < n; ++peer) {
    if (peer == me) continue;
    schedule.rounds[0].sends.push_back({peer, peer, 1});
    schedule.rounds[0].receives.push_back({peer, me, 1});
  }
  return schedule;
}

Schedule DirectGather(int n, int me) {
  Schedule schedule{.num_chunks = n, .rounds = {Round()}};
  for (int peer = 0; peer < n; ++peer) {
    if (peer == me) continue;
    schedule.rounds[0].sends.push_back({peer, me, 1});
    schedule.rounds[0].receives.push_back({peer, peer, 1});
  }
  return schedule;
}

// Task i begins with task i + 1, so that not all send to the same at once.
Schedule DirectAllToAll(int n, int me) {
  Schedule schedule{.num_chunks = n * n, .rounds = {Round()}};
  for (int step = 1; step < n; ++step) {
    const int to = (me + step) % n;
    const int from = (me - step + n) % n;
    schedule.rounds[0].sends.push_back({to, me * n + to, 1});
    schedule.rounds[0].receives.push_back({from, from * n + me, 1});
  }
  return schedule;
}

bool SeveralOnAHost(const Topology& topology, size_t* num_hosts) {
  const std::vector<std::vector<int>> hosts = TasksOfHosts(topology);
  *num_hosts = hosts.size();
  return hosts.size() < topology.hosts.size();
}

bool Has(CollectiveKind kind, Algorithm algorithm) {
  switch (kind) {
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier:
      return algorithm != Algorithm::kNone && algorithm != Algorithm::kTree;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kGather:
      return algorithm == Algorithm::kDirect || algorithm == Algorithm::kRing;
    case CollectiveKind::kBroadcast:
      return algorithm == Algorithm::kTree;
    case CollectiveKind::kAllToAll:
      return algorithm == Algorithm::kDirect;
  }
  return false;
}

constexpr Algorithm kAlgorithms[] = {Algorithm::kNone,
                                     Algorithm::kDirect,
                                     Algorithm::kParts,
                                     Algorithm::kRing,
                                     Algorithm::kHalvingDoubling,
                                     Algorithm::kHub,
                                     Algorithm::kHierarchical,
                                     Algorithm::kTree};

}  // namespace

absl::string_view AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kNone:
      return "none";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kParts:
      return "parts";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kHalvingDoubling:
      return "halving-doubling";
    case Algorithm::kHub:
      return "hub";
    case Algorithm::kHierarchical:
      return "hierarchical";
    case Algorithm::kTree:
      return "tree";
  }
  return "unknown";
}

Algorithm ChooseAlgorithm(CollectiveKind kind, int64_t bytes, const Topology& topology,
                          absl::string_view hint) {
  const int n = topology.num_tasks();
  if (n == 1) return Algorithm::kNone;
  for (const Algorithm algorithm : kAlgorithms) {
    if (AlgorithmName(algorithm) == hint && Has(kind, algorithm)) return algorithm;
  }
  if (kind == CollectiveKind::kReduce) {
    for (const MeasuredChoice& choice : topology.measured) {
      if (bytes <= choice.most_bytes) return choice.algorithm;
    }
  }
  const bool is_small = bytes <= kDirectBytes && n <= kDirectTasks;
  switch (kind) {
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier: {
      if (is_small) return Algorithm::kDirect;
      size_t num_hosts = 0;
      const bool several = SeveralOnAHost(topology, &num_hosts);
      if (num_hosts == 1) return Algorithm::kParts;  // each other's memory is near
      if (n == 2) return Algorithm::kRing;
      if (several) return Algorithm::kHierarchical;
      return bytes >= kRingBytes ? Algorithm::kRing : Algorithm::kHalvingDoubling;
    }
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kGather:
      return is_small ? Algorithm::kDirect : Algorithm::kRing;
    case CollectiveKind::kBroadcast:
      return Algorithm::kTree;
    case CollectiveKind::kAllToAll:
      return Algorithm::kDirect;
  }
  return Algorithm::kDirect;
}

Schedule MakeSchedule(CollectiveKind kind, Algorithm algorithm, const Topology& topology, int me,
                      int root) {
  const int n = topology.num_tasks();
  switch (kind) {
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier:
      if (n == 1) return Schedule();
      if (algorithm == Algorithm::kParts) return PartsReduce(n, me);
      if (algorithm == Algorithm::kRing) return RingReduce(n, me);
      if (algorithm == Algorithm::kHalvingDoubling) return HalvingDoubling(n, me);
      if (algorithm == Algorithm::kHierarchical) return Hierarchical(topology, me);
      if (algorithm == Algorithm::kHub) {  // as if all were of one host
        return Hierarchical({std::vector<std::string>(topology.hosts.size())}, me);
      }
      return Direct(n, me, 1, /*reduces=*/true);
    case CollectiveKind::kReduceScatter: {
      if (algorithm != Algorithm::kRing) return DirectScatter(n, me);
      Schedule schedule{.num_chunks = n, .rounds = {}};
      AddRingScatter(n, me, &schedule);
      return schedule;
    }
    case CollectiveKind::kGather: {
      if (algorithm != Algorithm::kRing) return DirectGather(n, me);
      Schedule schedule{.num_chunks = n, .rounds = {}};
      AddRingGather(n, me, &schedule);
      return schedule;
    }
    case CollectiveKind::kBroadcast:
      return Tree(n, me, root);
    case CollectiveKind::kAllToAll:
      return DirectAllToAll(n, me);
  }
  return Schedule();
}

}  // namespace weft::collective
