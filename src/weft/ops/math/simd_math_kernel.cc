// SPDX-License-Identifier: Apache-2.0
// Transcendental functions of float and double, compiled once for each instruction set. Polynomials
// are Highway's; what they leave undefined (NaN, infinities, poles, huge angles) is settled here.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/vector_sets.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/math/simd_table_kernel.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/math/simd_math_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::ops::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename D, typename V>
HWY_INLINE V KeepNaN(D, V x, V y) {
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

struct ExpF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V limit = hn::Set(d, sizeof(hn::TFromD<D>) == 4 ? 104.0f : 720.0f);
    return KeepNaN(d, x, hn::Exp(d, hn::Min(x, limit)));
  }
};
struct Expm1F {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V limit = hn::Set(d, sizeof(hn::TFromD<D>) == 4 ? 104.0f : 720.0f);
    const V y = hn::Expm1(d, hn::Max(hn::Min(x, limit), hn::Neg(limit)));
    // Tiny arguments, and zero with its sign, are their own result.
    return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 1e-20f)), KeepNaN(d, x, y), x);
  }
};
// Values at the edges of a logarithm whose pole is at `pole`.
template <typename D, typename V>
HWY_INLINE V LogEdges(D d, V x, V y, V pole) {
  using T = hn::TFromD<D>;
  const V inf = hn::Set(d, std::numeric_limits<T>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  y = hn::IfThenElse(hn::Eq(x, pole), hn::Neg(inf), y);
  y = hn::IfThenElse(hn::Lt(x, pole), nan, y);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  return KeepNaN(d, x, y);
}
struct LogF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    return LogEdges(d, x, hn::Log(d, x), hn::Zero(d));
  }
};
struct Log1pF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V y = LogEdges(d, x, hn::Log1p(d, x), hn::Set(d, -1.0f));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-20f)), x, y);
  }
};
struct TanhF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V limit = hn::Set(d, 20.0f);
    const V y = hn::Tanh(d, hn::Max(hn::Min(x, limit), hn::Neg(limit)));
    return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 1e-20f)), KeepNaN(d, x, y), x);
  }
};
struct SigmoidF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V one = hn::Set(d, 1.0f);
    // exp(-|x|) never overflows; for x < 0 the result is e / (1 + e).
    const V e = ExpF::Apply(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
};
template <typename Function, typename Exact, typename D, typename V>
HWY_INLINE V Angle(D d, V x) {
  if (hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 30000.0f)))) return Function::Apply(d, x);
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = Exact::Apply(lanes[i]);
  return hn::Load(d, lanes);
}
struct SinF {
  struct Near {
    template <typename D, typename V>
    static HWY_INLINE V Apply(D d, V x) {
      return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, hn::Sin(d, x));
    }
  };
  struct Exact {
    static float Apply(float x) { return ::sinf(x); }
    static double Apply(double x) { return ::sin(x); }
  };
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    return Angle<Near, Exact>(d, x);
  }
};
struct CosF {
  struct Near {
    template <typename D, typename V>
    static HWY_INLINE V Apply(D d, V x) {
      return hn::Cos(d, x);
    }
  };
  struct Exact {
    static float Apply(float x) { return ::cosf(x); }
    static double Apply(double x) { return ::cos(x); }
  };
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    return Angle<Near, Exact>(d, x);
  }
};

template <typename F, typename T>
void Run(const std::byte* a, int a_step, const std::byte*, int, std::byte* out_bytes, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* in = reinterpret_cast<const T*>(a);
  T* out = reinterpret_cast<T*>(out_bytes);
  if (a_step == 0) {
    const T value = hn::GetLane(F::Apply(d, hn::Set(d, *in)));
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::Apply(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == n) return;
  HWY_ALIGN T rest[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(rest, in + i, static_cast<size_t>(n - i) * sizeof(T));
  hn::Store(F::Apply(d, hn::Load(d, rest)), d, rest);
  std::memcpy(out + i, rest, static_cast<size_t>(n - i) * sizeof(T));
}

// The error function: a rational function of x^2, fitted to a relative error of 2.5e-8 on [0, 4]
// with the weights of an equal ripple; beyond that it is 1 in float.
struct ErfF {
  template <typename D, typename V>
  static HWY_INLINE V Apply(D d, V x) {
    const V limit = hn::Set(d, 4.0f);
    const V near = hn::Max(hn::Min(x, limit), hn::Neg(limit));
    const V t = hn::Mul(near, near);
    V p = hn::Set(d, 1.98717903e-06f);
    for (const float next :
         {0.000284516299f, 0.00388110966f, 0.0530948101f, 0.193492806f, 1.12837914f}) {
      p = hn::MulAdd(p, t, hn::Set(d, next));
    }
    V q = hn::Set(d, 3.74217259e-05f);
    for (const float next : {0.00118503173f, 0.0152027609f, 0.115328377f, 0.504811102f, 1.0f}) {
      q = hn::MulAdd(q, t, hn::Set(d, next));
    }
    const V one = hn::Set(d, 1.0f);
    const V y = hn::Div(hn::Mul(near, p), q);
    return KeepNaN(d, x, hn::Max(hn::Min(y, one), hn::Neg(one)));
  }
};

void HalfToFloat(const std::byte* in_bytes, int, const std::byte*, int, std::byte* out_bytes,
                 int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = reinterpret_cast<const uint16_t*>(in_bytes);
  auto* out = reinterpret_cast<float*>(out_bytes);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(d16, in + i))), d, out + i);
  }
  for (; i < n; ++i) out[i] = static_cast<float>(Half::FromBits(in[i]));
}

void FloatToHalf(const std::byte* in_bytes, int, const std::byte*, int, std::byte* out_bytes,
                 int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = reinterpret_cast<const float*>(in_bytes);
  auto* out = reinterpret_cast<uint16_t*>(out_bytes);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::BitCast(d16, hn::DemoteTo(half, hn::LoadU(d, in + i))), d16, out + i);
  }
  for (; i < n; ++i) out[i] = Half(in[i]).bits;
}

#define WEFT_FLOATS(name, f) \
  {name, DType::kFloat, Run<f, float>}, { name, DType::kDouble, Run<f, double> }
constexpr SimdTile kTiles[] = {
    WEFT_FLOATS("ExpOf", ExpF),
    WEFT_FLOATS("Expm1Of", Expm1F),
    WEFT_FLOATS("LogOf", LogF),
    WEFT_FLOATS("Log1pOf", Log1pF),
    WEFT_FLOATS("TanhOf", TanhF),
    WEFT_FLOATS("SigmoidOf", SigmoidF),
    WEFT_FLOATS("SinOf", SinF),
    WEFT_FLOATS("CosOf", CosF),
    {"ErfOf", DType::kFloat, Run<ErfF, float>},
    {kCastToFloat, DType::kHalf, HalfToFloat},
    {kCastToHalf, DType::kFloat, FloatToHalf},
};
#undef WEFT_FLOATS

SimdTable MathTiles() { return {kTiles, sizeof(kTiles) / sizeof(kTiles[0])}; }

}  // namespace
}  // namespace weft::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops {
HWY_EXPORT(MathTiles);

SimdTable SimdMathTiles() { return HWY_DYNAMIC_DISPATCH(MathTiles)(); }

}  // namespace weft::ops
#endif
