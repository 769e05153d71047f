// SPDX-License-Identifier: Apache-2.0
// Fits y = 3x + 2 with ops that run at once, then with the same step traced to a graph.
#include <cstdio>

#include "weft/eager.h"

namespace eager = weft::imperative;
using eager::Array;
weft::Status Fit() {
  WEFT_ASSIGN_OR_RETURN(const auto runtime,
                        eager::Runtime::Make({.catalogue = &weft::StandardCatalogue(),
                                              .devices = &weft::StandardDevices()}));
  eager::Runtime& run = *runtime;
  const Array x = Array::Vector<float>({-1, 0, 1, 2}), y = Array::Vector<float>({-1, 2, 5, 8});
  const Array rate = Array::Scalar<float>(0.1F);
  const eager::Variable slope(run, Array::Scalar<float>(0)), offset(run, Array::Scalar<float>(0));

  const auto step = [&](absl::Span<const Array> in) {
    eager::Tape tape(run);
    const Array line = run.Op("AddV2", {run.Op("Mul", {in[0], slope.Read()}), offset.Read()});
    const Array loss =
        run.Op("Mean", {run.Op("SquaredDifference", {line, in[1]}), Array::Scalar<int32_t>(0)});
    const auto gradients = tape.Gradient({loss}, {slope.handle(), offset.handle()});
    if (!run.ok()) return std::vector<Array>();
    slope.AssignSub(run.Op("Mul", {rate, gradients[0]}));
    offset.AssignSub(run.Op("Mul", {rate, gradients[1]}));
    return std::vector<Array>{loss};
  };
  int steps = 0;
  for (float loss = 1; loss > 0.01F && run.ok(); ++steps) {
    loss = step({x, y})[0].tensor().scalar<float>();
    std::printf("step %d loss %.4f\n", steps, loss);
  }
  std::printf("%s after %d steps at once\n", steps > 5 ? "close" : "lucky", steps);

  eager::TracedFunction traced(run, step);
  for (int i = 0; i < 300; ++i) traced({x, y});
  const Array found = slope.Read(), start = offset.Read();
  WEFT_RETURN_IF_ERROR(run.status());
  std::printf("y = %.3f x + %.3f after 300 steps as %zu graph\n", found.tensor().scalar<float>(),
              start.tensor().scalar<float>(), traced.num_traces());

  // The third derivative of x^4 is 24x: a tape in a tape in a tape.
  const Array at = Array::Scalar<float>(2);
  eager::Tape outer(run), middle(run), inner(run);
  for (eager::Tape* tape : {&outer, &middle, &inner}) tape->Watch(at);
  const Array power = run.Op("Square", {run.Op("Square", {at})});
  const Array first = inner.Gradient({power}, {at})[0];
  const Array second = middle.Gradient({first}, {at})[0];
  const Array third = outer.Gradient({second}, {at})[0];
  WEFT_RETURN_IF_ERROR(run.status());
  std::printf("the third derivative of x^4 at 2 is %.0f\n", third.tensor().scalar<float>());
  return weft::Status();
}

int main() {
  const weft::Status status = Fit();
  if (!status.ok()) std::fprintf(stderr, "eager: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
