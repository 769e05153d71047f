// SPDX-License-Identifier: Apache-2.0
// What a checkpoint costs the steps beside which it is written.
//
//   saving_rounds FOLDER MEGABYTES [TARGET]      (no target: this process)
//
// Trains rows of eight tables of that size in all. For each line of stdin: steps for two seconds,
// then steps while one checkpoint is taken and written in the background; answers {"us": the time
// of those steps beyond what as many take otherwise, "step_us": that of a step otherwise,
// "longest_us": of the longest step meanwhile, "saving_us": until the checkpoint was whole}.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "base/threads.h"
#include "bench/rounds.h"
#include "weft/api/ops.h"
#include "weft/client/session.h"
#include "weft/graph/import.h"
#include "weft/train/embedding.h"
#include "weft/train/optimizer.h"
#include "weft/train/saver.h"

namespace weft {
namespace {

using bench::Seconds;

constexpr int kTables = 8;
constexpr int64_t kWidth = 64, kLookups = 256;

class Training {
 public:
  Status Start(int64_t megabytes, const std::string& target) {
    GraphBuilder& b = program_.builder();
    const int64_t rows = (megabytes << 20) / kTables / kWidth / 4;
    std::vector<int32_t> ids(kLookups);
    for (int64_t i = 0; i < kLookups; ++i) ids[i] = static_cast<int32_t>(i * 7919 % rows);
    const Endpoint wanted = op::Placeholder(b, DType::kInt32, {.shape = {-1}, .name = "ids"});
    std::vector<Endpoint> losses;
    for (int k = 0; k < kTables; ++k) {
      const auto table =
          train::AddEmbedding(program_, absl::StrCat("t", k), rows, kWidth, 1, train::Ones());
      losses.push_back(
          op::L2Loss(b, train::EmbeddingLookup(b, table, wanted, train::PartitionStrategy::kMod)));
    }
    WEFT_ASSIGN_OR_RETURN(Node* const step,
                          train::GradientDescent(0.001)->Minimize(program_, op::AddN(b, losses)));
    Node* const init = program_.InitializeVariables();
    WEFT_ASSIGN_OR_RETURN(saver_,
                          train::Saver::Create(program_, {.max_to_keep = 1, .can_take = true}));
    WEFT_RETURN_IF_ERROR(program_.status());
    WEFT_ASSIGN_OR_RETURN(session_, client::NewSession({.target = target}));
    WEFT_RETURN_IF_ERROR(session_->Extend(ExportGraph(program_.graph())));
    WEFT_RETURN_IF_ERROR(session_->Run({}, {}, {init->name()}, nullptr));
    step_ = step->name();
    ids_ = Tensor::FromSpan<int32_t>(Shape{kLookups}, ids);
    return absl::OkStatus();
  }

  // One step, and how long it took.
  StatusOr<double> Step() {
    const double begin = Seconds();
    WEFT_RETURN_IF_ERROR(session_->Run({{"ids:0", ids_}}, {}, {step_}, nullptr));
    return Seconds() - begin;
  }

  Status Round(const std::string& folder) {
    std::vector<double> alone;
    for (const double end = Seconds() + 2; Seconds() < end;) {
      WEFT_ASSIGN_OR_RETURN(const double took, Step());
      alone.push_back(took);
    }
    double each = 0;
    for (const double took : alone) each += took / static_cast<double>(alone.size());
    std::atomic<bool> is_whole{false};
    Status saved;
    const double begin = Seconds();
    WEFT_RETURN_IF_ERROR(saver_->Take(*session_));
    double longest = Seconds() - begin, count = 0;
    Thread writer("save", [&] {
      saved = saver_->SaveTaken(*session_, folder, ++saves_).status();
      is_whole = true;
    });
    while (!is_whole) {
      WEFT_ASSIGN_OR_RETURN(const double took, Step());
      longest = std::max(longest, took);
      ++count;
    }
    const double took = Seconds() - begin;
    writer.Join();
    std::printf(
        "{\"us\": %.0f, \"check\": 0, \"step_us\": %.1f, \"longest_us\": %.0f, \"saving_us\": "
        "%.0f}\n",
        std::max(0.0, took - count * each) * 1e6, each * 1e6, longest * 1e6, took * 1e6);
    std::fflush(stdout);
    return saved;
  }

 private:
  train::Program program_;
  std::unique_ptr<train::Saver> saver_;
  std::unique_ptr<session::Session> session_;
  std::string step_;
  Tensor ids_;
  int64_t saves_ = 0;
};

Status Serve(const std::string& folder, int64_t megabytes, const std::string& target) {
  Training training;
  WEFT_RETURN_IF_ERROR(training.Start(megabytes, target));
  std::string line;
  while (std::getline(std::cin, line)) WEFT_RETURN_IF_ERROR(training.Round(folder));
  return absl::OkStatus();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  int64_t megabytes = 0;
  if (argc < 3 || argc > 4 || !absl::SimpleAtoi(argv[2], &megabytes) || megabytes < 1) {
    std::fprintf(stderr, "usage: saving_rounds FOLDER MEGABYTES [TARGET]\n");
    return 2;
  }
  const weft::Status status = weft::Serve(argv[1], megabytes, argc > 3 ? argv[3] : "");
  if (!status.ok())
    std::fprintf(stderr, "saving_rounds: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
