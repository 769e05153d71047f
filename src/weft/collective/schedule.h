// SPDX-License-Identifier: Apache-2.0
// The algorithms: who sends which chunks to whom, round by round. Pure functions of the number of
// tasks and one's own place among them; all tasks of an exchange must choose the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "weft/kernel/collective_runner.h"

namespace weft::collective {

// Chunks [first, first + count) go to, or come from, the task of this number.
struct Transfer {
  int peer = 0;
  int first = 0;
  int count = 0;
  bool operator==(const Transfer&) const = default;
};

// What one task does in a round. It sends before it takes what it receives; it goes on when all of
// that is there. Received chunks take the place of one's own or, if `reduces`, are reduced with
// them in order of the tasks' numbers, whatever the order of arrival.
struct Round {
  std::vector<Transfer> sends = {};
  std::vector<Transfer> receives = {};
  bool reduces = false;
};

// One task's rounds. All tasks of an exchange have the same number of them.
struct Schedule {
  int num_chunks = 1;
  std::vector<Round> rounds = {};
};

enum class Algorithm : uint8_t {
  kNone,             // one task
  kDirect,           // everybody sends to everybody: one round
  kParts,            // everybody reduces a part for all and hands it to all: two rounds
  kRing,             // to the next task only: least bytes
  kHalvingDoubling,  // few rounds, and as few bytes where the number is a power of two
  kHub,              // to one task and back: as with one parameter server
  kHierarchical,     // to a leader of each host, between leaders, back
  kTree,             // a broadcast: who has it passes it on
};
// "direct", "ring", "halving-doubling", ...
absl::string_view AlgorithmName(Algorithm algorithm);

// Of reductions of at most so many bytes.
struct MeasuredChoice {
  int64_t most_bytes = 0;
  Algorithm algorithm = Algorithm::kNone;
};

// What decides it. `hosts[i]` is the host of task i.
struct Topology {
  std::vector<std::string> hosts;
  std::vector<MeasuredChoice> measured = {};  // in order of bytes; empty: nothing was
  int num_tasks() const { return static_cast<int>(hosts.size()); }
};

// For `bytes` of each task's contribution; `hint` ("auto", or a name of AlgorithmName) is followed
// where the kind has that algorithm, else what was measured, else a rule.
Algorithm ChooseAlgorithm(CollectiveKind kind, int64_t bytes, const Topology& topology,
                          absl::string_view hint);

// Task `me`'s rounds. `root` is the task that a broadcast comes from. Chunks are, of a reduction:
// equal parts; of a scatter or a gather: one for each task; of an all-to-all: one from each task to
// each, (from * tasks + to).
Schedule MakeSchedule(CollectiveKind kind, Algorithm algorithm, const Topology& topology, int me,
                      int root);

}  // namespace weft::collective
