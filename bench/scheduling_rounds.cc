// SPDX-License-Identifier: Apache-2.0
// How long the scheduler takes for a decision, and how many events a second the simulator plays.
//   scheduling_rounds decide [NODES] [PODS]      one decision for each pod that comes, while pods
//   end scheduling_rounds simulate [NODES] [JOBS] [POLICY ...]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <time.h>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/resources/node_words.h"
#include "platform/scheduling/simulator.h"
#include "platform/scheduling/workload_book.h"

namespace weft::platform {
namespace {

int64_t NumberOf(int argc, char** argv, int at, int64_t missing) {
  return argc > at ? std::strtoll(argv[at], nullptr, 10) : missing;
}

// Of this thread: the machine may be busy with others.
double ProcessorSeconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

ObjectPtr MakePod(int64_t number, int64_t processors) {
  Json container;
  container.Set("name", "c");
  container.Set("image", "i");
  SetField(&container, {"resources", "requests", "cpu"}, absl::StrCat(processors));
  SetField(&container, {"resources", "requests", "memory"}, absl::StrCat(processors, "Gi"));
  Json pod;
  SetField(&pod, {"metadata", "name"}, absl::StrCat("p", number));
  SetField(&pod, {"metadata", "namespace"}, "default");
  SetField(&pod, {"metadata", "uid"}, absl::StrCat("u", number));
  SetField(&pod, {"spec", "containers"}, Json(Json::Array{std::move(container)}));
  return std::make_shared<const Json>(std::move(pod));
}

int Decide(int64_t nodes, int64_t pods) {
  const auto order = MakeOrder("fifo");
  const auto placement = MakePlacement("packing");
  if (!order.ok() || !placement.ok()) return 1;
  WorkloadBook::Options options;
  options.scheduler_names = {"default-scheduler"};
  options.order = order->get();
  options.placement = placement->get();
  WorkloadBook book(options);
  for (int64_t i = 0; i < nodes; ++i) {
    const std::string name = absl::StrCat("n", i);
    const StatusOr<Json> node = ParseNodeWord(absl::StrCat(name, ",cpu=32,memory=128Gi,pods=110"));
    if (!node.ok()) return 1;
    book.SetNode(name, &*node);
  }
  std::mt19937_64 random(1);
  std::vector<double> times;
  std::vector<WorkloadBook::Binding> running;
  std::vector<WorkloadBook::Eviction> evictions;
  for (int64_t i = 0; i < pods; ++i) {
    const ObjectPtr pod = MakePod(i, 1 + static_cast<int64_t>(random() % 4));
    const auto now = static_cast<double>(i);
    book.SetPod({"default", NameOf(*pod)}, pod, now);
    // From two thirds on one ends for each that comes.
    if (i > nodes * 8 && !running.empty()) {
      const size_t at = random() % running.size();
      book.SetPod({"default", NameOf(*running[at].pod)}, nullptr, now);
      running[at] = running.back();
      running.pop_back();
    }
    const double begun = ProcessorSeconds();
    const size_t before = running.size();
    book.Decide(now, &running, &evictions);
    times.push_back((ProcessorSeconds() - begun) * 1e6);
    for (size_t j = before; j < running.size(); ++j) {
      // As a watch shows it a moment later.
      Json bound = *running[j].pod;
      SetField(&bound, {"spec", "nodeName"}, running[j].node);
      running[j].pod = std::make_shared<const Json>(std::move(bound));
      book.SetPod({"default", NameOf(*running[j].pod)}, running[j].pod, now);
    }
  }
  std::sort(times.begin(), times.end());
  const auto part = [&](double of) {
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(of * static_cast<double>(times.size())))];
  };
  std::printf(
      "%lld nodes, %lld pods: %zu placed at the end; a decision takes %.1f us (p50), %.1f us "
      "(p99), %.1f us (most)\n",
      static_cast<long long>(nodes), static_cast<long long>(pods), running.size(), part(0.5),
      part(0.99), times.back());
  return 0;
}

// Many short jobs and few long ones that ask for a little less than there is.
std::string DrawTrace(int64_t nodes, int64_t jobs) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> duration(6, 1.7);
  const int widths[] = {1, 1, 1, 1, 1, 2, 4, 8};
  const double work = std::exp(6 + 1.7 * 1.7 / 2) * 19 / 8;
  std::exponential_distribution<double> pause(0.9 * static_cast<double>(nodes * 8) / work);
  std::string text = "name,submit_time,duration,num_gpu\n";
  double now = 0;
  for (int64_t i = 0; i < jobs; ++i) {
    now += pause(random);
    absl::StrAppend(&text, i, ",", now, ",", duration(random), ",", widths[random() % 8], "\n");
  }
  return text;
}

int Play(int64_t nodes, int64_t jobs, const std::vector<std::string>& policies) {
  const auto trace = ParseTrace(DrawTrace(nodes, jobs), "drawn");
  if (!trace.ok()) return 1;
  const auto cluster = MakeNodes(static_cast<int>(nodes), 8, 128000, int64_t{512} << 30);
  for (const std::string& name : policies) {
    SimulationOptions options;
    const auto policy = ParsePolicy(name);
    if (!policy.ok()) return 1;
    options.policy = *policy;
    const double begun = ProcessorSeconds();
    const auto result = Simulate(cluster, *trace, options);
    const double used = ProcessorSeconds() - begun;
    if (!result.ok()) return 1;
    std::printf(
        "%lld nodes, %lld jobs, %-20s %7lld events in %.2f s of a processor (%.2f s passed): %.2f "
        "million a "
        "second\n",
        static_cast<long long>(nodes), static_cast<long long>(jobs), name.c_str(),
        static_cast<long long>(result->events), used, result->wall_seconds,
        static_cast<double>(result->events) / used / 1e6);
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "decide";
  if (what == "decide")
    return Decide(NumberOf(argc, argv, 2, 1000), NumberOf(argc, argv, 3, 20000));
  std::vector<std::string> policies(argv + std::min(argc, 4), argv + argc);
  if (policies.empty()) policies = {"fifo", "fifo+easy", "srtf", "las", "fifo/consolidation"};
  return Play(NumberOf(argc, argv, 2, 64), NumberOf(argc, argv, 3, 100000), policies);
}

}  // namespace
}  // namespace weft::platform

int main(int argc, char** argv) { return weft::platform::Main(argc, argv); }
