// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Float scalars.
struct Scalars {
  GraphBuilder& b;
  Endpoint n(double value) const { return Number(b, DType::kFloat, value); }
  Endpoint two(const char* op, Endpoint x, Endpoint y) const { return b.Op(op, {x, y}); }
  Endpoint add(Endpoint x, Endpoint y) const { return two("AddV2", x, y); }
  Endpoint sub(Endpoint x, Endpoint y) const { return two("Sub", x, y); }
  Endpoint mul(Endpoint x, Endpoint y) const { return two("Mul", x, y); }
  Endpoint div(Endpoint x, Endpoint y) const { return two("RealDiv", x, y); }
  Endpoint pow(Endpoint x, Endpoint y) const { return two("Pow", x, y); }
  Endpoint floor(Endpoint x) const { return b.Op("Floor", {x}); }
  // (1 + cos(pi share)) / 2
  Endpoint wave(Endpoint share) const {
    return mul(add(b.Op("Cos", {mul(share, n(kPi))}), n(1)), n(0.5));
  }
};

Endpoint ShareOf(const Scalars& s, Endpoint step, int64_t steps, bool staircase) {
  const Endpoint share = s.div(step, s.n(static_cast<double>(std::max<int64_t>(1, steps))));
  return staircase ? s.floor(share) : share;
}

}  // namespace

Schedule ExponentialDecay(double initial, int64_t decay_steps, double decay_rate, bool staircase) {
  return Schedule([=](GraphBuilder& b, Endpoint step) {
    const Scalars s{b};
    return s.mul(s.n(initial), s.pow(s.n(decay_rate), ShareOf(s, step, decay_steps, staircase)));
  });
}

Schedule InverseTimeDecay(double initial, int64_t decay_steps, double decay_rate, bool staircase) {
  return Schedule([=](GraphBuilder& b, Endpoint step) {
    const Scalars s{b};
    const Endpoint share = ShareOf(s, step, decay_steps, staircase);
    return s.div(s.n(initial), s.add(s.n(1), s.mul(s.n(decay_rate), share)));
  });
}

Schedule PolynomialDecay(double initial, int64_t decay_steps, double end, double power,
                         bool cycle) {
  return Schedule([=](GraphBuilder& b, Endpoint step) {
    const Scalars s{b};
    const Endpoint steps = s.n(static_cast<double>(std::max<int64_t>(1, decay_steps)));
    Endpoint whole = steps, now = s.two("Minimum", step, steps);
    if (cycle) {
      const Endpoint rounds = s.two("Maximum", b.Op("Ceil", {s.div(step, steps)}), s.n(1));
      whole = s.mul(steps, rounds);
      now = step;
    }
    const Endpoint left = s.pow(s.sub(s.n(1), s.div(now, whole)), s.n(power));
    return s.add(s.mul(s.n(initial - end), left), s.n(end));
  });
}

Schedule PiecewiseConstantDecay(std::vector<int64_t> boundaries, std::vector<double> values) {
  return Schedule([boundaries = std::move(boundaries), values = std::move(values)](
                      GraphBuilder& b, Endpoint step) -> Endpoint {
    if (values.size() != boundaries.size() + 1) {
      b.Fail(InvalidArgument("PiecewiseConstantDecay has ", values.size(), " values and ",
                             boundaries.size(), " boundaries, expected one value more"));
      return {};
    }
    const Scalars s{b};
    Endpoint rate = s.n(values.back());
    for (size_t i = boundaries.size(); i-- > 0;) {
      const Endpoint before = s.two("LessEqual", step, s.n(static_cast<double>(boundaries[i])));
      rate = b.Op("SelectV2", {before, s.n(values[i]), rate});
    }
    return rate;
  });
}

Schedule CosineDecay(double initial, int64_t decay_steps, const CosineDecayOptions& options) {
  return Schedule([=](GraphBuilder& b, Endpoint step) {
    const Scalars s{b};
    const bool warms = options.warmup_target >= 0 && options.warmup_steps > 0;
    const double top = warms ? options.warmup_target : initial;
    const auto warmup = static_cast<double>(warms ? options.warmup_steps : 0);
    const Endpoint steps = s.n(static_cast<double>(std::max<int64_t>(1, decay_steps)));
    const Endpoint after = warms ? s.sub(step, s.n(warmup)) : step;
    const Endpoint share = s.div(s.two("Minimum", after, steps), steps);
    const Endpoint part = s.add(s.mul(s.wave(share), s.n(1 - options.alpha)), s.n(options.alpha));
    const Endpoint decayed = s.mul(s.n(top), part);
    if (!warms) return decayed;
    const Endpoint rising = s.add(s.mul(s.n((top - initial) / warmup), step), s.n(initial));
    return b.Op("SelectV2", {s.two("Less", step, s.n(warmup)), rising, decayed});
  });
}

Schedule CosineDecayRestarts(double initial, int64_t first_decay_steps,
                             const CosineRestartsOptions& options) {
  return Schedule([=](GraphBuilder& b, Endpoint step) {
    const Scalars s{b};
    Endpoint share = ShareOf(s, step, first_decay_steps, false);
    Endpoint round;
    if (options.t_mul == 1) {
      round = s.floor(share);
      share = s.sub(share, round);
    } else {
      const double log_t = std::log(options.t_mul);
      const Endpoint grown = s.sub(s.n(1), s.mul(share, s.n(1 - options.t_mul)));
      round = s.floor(s.div(b.Op("Log", {grown}), s.n(log_t)));
      const Endpoint power = s.pow(s.n(options.t_mul), round);
      const Endpoint begun = s.div(s.sub(s.n(1), power), s.n(1 - options.t_mul));
      share = s.div(s.sub(share, begun), power);
    }
    const Endpoint height = s.pow(s.n(options.m_mul), round);
    const Endpoint decayed = s.mul(height, s.wave(share));
    const Endpoint part = s.add(s.mul(decayed, s.n(1 - options.alpha)), s.n(options.alpha));
    return s.mul(s.n(initial), part);
  });
}

}  // namespace weft::estimator
