// SPDX-License-Identifier: Apache-2.0
// Quasi-Newton steps with a short memory: Liu and Nocedal, "On the limited memory BFGS method for
// large scale optimization", 1989; coordinates that press against their bound stand still.
#include "platform/search/descent.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace weft::platform {
namespace {

constexpr size_t kRemembered = 8;
constexpr double kFirstMove = 0.2;  // of a coordinate, at most
constexpr double kFlat = 1e-9;

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Move {
  std::vector<double> step, change;  // of the place and of the slope
  double product = 0;
};

// The slope times what is known of the inverse curvature.
std::vector<double> Direction(const std::deque<Move>& moves, std::vector<double> slope) {
  std::vector<double> shares(moves.size());
  for (size_t k = moves.size(); k-- > 0;) {
    shares[k] = Product(moves[k].step, slope) / moves[k].product;
    for (size_t i = 0; i < slope.size(); ++i) slope[i] -= shares[k] * moves[k].change[i];
  }
  if (!moves.empty()) {
    const Move& last = moves.back();
    const double scale = last.product / Product(last.change, last.change);
    for (double& v : slope) v *= scale;
  }
  for (size_t k = 0; k < moves.size(); ++k) {
    const double share = shares[k] - Product(moves[k].change, slope) / moves[k].product;
    for (size_t i = 0; i < slope.size(); ++i) slope[i] += share * moves[k].step[i];
  }
  for (double& v : slope) v = -v;
  return slope;
}

// Takes out what leads out of the box.
void StayInside(const std::vector<double>& x, const std::vector<double>& low,
                const std::vector<double>& high, std::vector<double>* direction) {
  for (size_t i = 0; i < x.size(); ++i) {
    double& d = (*direction)[i];
    if ((d < 0 && x[i] <= low[i]) || (d > 0 && x[i] >= high[i])) d = 0;
  }
}

}  // namespace

double Descend(const SmoothFunction& function, const std::vector<double>& low,
               const std::vector<double>& high, int evaluations, std::vector<double>* x) {
  const size_t n = x->size();
  std::vector<double> slope(n), next(n), next_slope(n);
  double value = function(*x, &slope);
  std::deque<Move> moves;
  for (int used = 1; used < evaluations;) {
    std::vector<double> direction = Direction(moves, slope);
    StayInside(*x, low, high, &direction);
    if (!(Product(direction, slope) < 0)) {
      moves.clear();
      direction = Direction(moves, slope);
      StayInside(*x, low, high, &direction);
    }
    double widest = 0;
    for (const double d : direction) widest = std::max(widest, std::abs(d));
    if (!(widest > kFlat)) break;
    double length = moves.empty() ? std::min(1.0, kFirstMove / widest) : 1;
    bool is_better = false;
    double gain = 0;
    for (; used < evaluations && !is_better; length *= 0.3) {
      double expected = 0;
      for (size_t i = 0; i < n; ++i) {
        next[i] = std::clamp((*x)[i] + length * direction[i], low[i], high[i]);
        expected += slope[i] * (next[i] - (*x)[i]);
      }
      if (expected > -1e-14) break;
      const double there = function(next, &next_slope);
      ++used;
      is_better = there <= value + 1e-4 * expected;
      if (!is_better) continue;
      gain = value - there;
      value = there;
    }
    if (!is_better) {
      if (moves.empty()) break;
      moves.clear();
      continue;
    }
    Move move{std::vector<double>(n), std::vector<double>(n)};
    for (size_t i = 0; i < n; ++i) {
      move.step[i] = next[i] - (*x)[i];
      move.change[i] = next_slope[i] - slope[i];
    }
    move.product = Product(move.step, move.change);
    if (move.product > 1e-12 * Product(move.change, move.change)) {
      moves.push_back(std::move(move));
      if (moves.size() > kRemembered) moves.pop_front();
    }
    x->swap(next);
    slope.swap(next_slope);
    if (gain < kFlat * (1 + std::abs(value))) break;
  }
  return value;
}

}  // namespace weft::platform
