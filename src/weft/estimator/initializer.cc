// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/initializer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"

namespace weft::estimator {
namespace {

const std::map<std::string, std::string>& ShortNames() {
  static const auto* const names =
      new std::map<std::string, std::string>{{"zeros", "Zeros"},
                                             {"zero", "Zeros"},
                                             {"ones", "Ones"},
                                             {"one", "Ones"},
                                             {"constant", "Constant"},
                                             {"random_normal", "RandomNormal"},
                                             {"random_uniform", "RandomUniform"},
                                             {"uniform", "RandomUniform"},
                                             {"normal", "RandomNormal"},
                                             {"truncated_normal", "TruncatedNormal"},
                                             {"variance_scaling", "VarianceScaling"},
                                             {"glorot_uniform", "GlorotUniform"},
                                             {"glorot_normal", "GlorotNormal"},
                                             {"he_uniform", "HeUniform"},
                                             {"he_normal", "HeNormal"},
                                             {"lecun_uniform", "LecunUniform"},
                                             {"lecun_normal", "LecunNormal"},
                                             {"orthogonal", "Orthogonal"},
                                             {"identity", "Identity"}};
  return *names;
}

struct Scaling {
  double scale = 1;
  std::string mode = "fan_in";
  std::string distribution = "truncated_normal";
};

// The named kinds of variance scaling (Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998).
const std::map<std::string, Scaling>& NamedScalings() {
  static const auto* const scalings =
      new std::map<std::string, Scaling>{{"GlorotUniform", {1, "fan_avg", "uniform"}},
                                         {"GlorotNormal", {1, "fan_avg", "truncated_normal"}},
                                         {"HeUniform", {2, "fan_in", "uniform"}},
                                         {"HeNormal", {2, "fan_in", "truncated_normal"}},
                                         {"LecunUniform", {1, "fan_in", "uniform"}},
                                         {"LecunNormal", {1, "fan_in", "truncated_normal"}}};
  return *scalings;
}

struct Fans {
  double in = 1, out = 1;
};

Fans FansOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {static_cast<double>(shape.dim(0)), static_cast<double>(shape.dim(0))};
  double field = 1;
  for (int i = 0; i + 2 < rank; ++i) field *= static_cast<double>(shape.dim(i));
  return {field * static_cast<double>(shape.dim(rank - 2)),
          field * static_cast<double>(shape.dim(rank - 1))};
}

train::Initializer Scaled(const Scaling& how, int64_t seed) {
  return [how, seed](GraphBuilder& b, DType dtype, const Shape& shape) {
    const Fans fans = FansOf(shape);
    const double fan = how.mode == "fan_in"    ? fans.in
                       : how.mode == "fan_out" ? fans.out
                                               : (fans.in + fans.out) / 2;
    const double scale = how.scale / std::max(1.0, fan);
    if (how.distribution == "uniform") {
      const auto limit = static_cast<float>(std::sqrt(3 * scale));
      return train::RandomUniform(-limit, limit, seed, seed)(b, dtype, shape);
    }
    if (how.distribution == "untruncated_normal") {
      return train::RandomNormal(0, static_cast<float>(std::sqrt(scale)), seed, seed)(b, dtype,
                                                                                      shape);
    }
    // Cutting at two deviations leaves this part of the deviation.
    const double kept = .87962566103423978;
    return train::TruncatedNormal(0, static_cast<float>(std::sqrt(scale) / kept), seed, seed)(
        b, dtype, shape);
  };
}

Status NeedsMatrix(const char* what, const Shape& shape) {
  return InvalidArgument(what, " needs a matrix or more, got shape ", shape.ToString());
}

train::Initializer OrthogonalOf(double gain, int64_t seed) {
  return [gain, seed](GraphBuilder& b, DType dtype, const Shape& shape) -> Endpoint {
    if (shape.rank() < 2) {
      b.Fail(NeedsMatrix("Orthogonal", shape));
      return {};
    }
    const int64_t columns = shape.dim(shape.rank() - 1);
    const int64_t rows = columns == 0 ? 0 : shape.num_elements() / columns;
    const Shape tall{std::max(rows, columns), std::min(rows, columns)};
    const Endpoint noise = train::RandomNormal(0, 1, seed, seed)(b, dtype, tall);
    Node* qr = b.AddNode("Qr", {noise});
    // With the signs of R's diagonal the matrix is drawn evenly.
    const Endpoint signs = b.Op("Sign", {b.Op("MatrixDiagPart", {Endpoint{qr, 1}})});
    Endpoint q = b.Op("Mul", {Endpoint{qr, 0}, signs});
    if (rows < columns) q = b.Op("Transpose", {q, IntVector(b, {1, 0})});
    q = b.Op("Reshape", {q, ShapeVector(b, shape)});
    return b.Op("Mul", {q, Number(b, dtype, gain)});
  };
}

train::Initializer IdentityOf(double gain) {
  return [gain](GraphBuilder& b, DType dtype, const Shape& shape) -> Endpoint {
    if (shape.rank() != 2) {
      b.Fail(NeedsMatrix("Identity", shape));
      return {};
    }
    const int64_t least = std::min(shape.dim(0), shape.dim(1));
    const Endpoint ones = train::Constant(gain)(b, dtype, Shape{least});
    const Endpoint zeros = train::Zeros()(b, dtype, shape);
    return b.Op("MatrixSetDiag", {zeros, ones});
  };
}

}  // namespace

Initializer::Initializer(const std::string& name) : class_name_(name) {
  const auto found = ShortNames().find(name);
  if (found != ShortNames().end()) class_name_ = found->second;
}

double Initializer::Number(const char* name, double fallback) const {
  const Json* found = config_.Find(name);
  return found == nullptr ? fallback : found->AsDouble().value_or(fallback);
}

StatusOr<train::Initializer> Initializer::MakeScaled(int64_t seed) const {
  Scaling how;
  how.scale = Number("scale", 1);
  for (const auto& [name, target] :
       {std::pair("mode", &how.mode), std::pair("distribution", &how.distribution)}) {
    if (const Json* found = config_.Find(name)) {
      WEFT_ASSIGN_OR_RETURN(*target, found->AsString());
    }
  }
  if (how.scale <= 0) return InvalidArgument("VarianceScaling needs a scale above 0");
  if (how.mode != "fan_in" && how.mode != "fan_out" && how.mode != "fan_avg") {
    return InvalidArgument("VarianceScaling knows fan_in, fan_out and fan_avg, not '", how.mode,
                           "'");
  }
  if (how.distribution != "uniform" && how.distribution != "untruncated_normal" &&
      how.distribution != "truncated_normal" && how.distribution != "normal") {
    return InvalidArgument("VarianceScaling does not know the distribution '", how.distribution,
                           "'");
  }
  return Scaled(how, seed);
}

StatusOr<train::Initializer> Initializer::Make(int64_t seed) const {
  const auto own = static_cast<int64_t>(Number("seed", 0));
  if (own != 0) seed = own;
  const auto number = [this](const char* name, double fallback) {
    return static_cast<float>(Number(name, fallback));
  };
  if (class_name_ == "Zeros") return train::Zeros();
  if (class_name_ == "Ones") return train::Ones();
  if (class_name_ == "Constant") return train::Constant(Number("value", 0));
  if (class_name_ == "RandomNormal") {
    return train::RandomNormal(number("mean", 0), number("stddev", 0.05), seed, seed);
  }
  if (class_name_ == "RandomUniform") {
    return train::RandomUniform(number("minval", -0.05), number("maxval", 0.05), seed, seed);
  }
  if (class_name_ == "TruncatedNormal") {
    return train::TruncatedNormal(number("mean", 0), number("stddev", 0.05), seed, seed);
  }
  if (class_name_ == "VarianceScaling") return MakeScaled(seed);
  if (class_name_ == "Orthogonal") return OrthogonalOf(Number("gain", 1), seed);
  if (class_name_ == "Identity") return IdentityOf(Number("gain", 1));
  const auto named = NamedScalings().find(class_name_);
  if (named != NamedScalings().end()) return Scaled(named->second, seed);
  return InvalidArgument("There is no initializer '", class_name_, "'");
}

Json Initializer::ToJson() const {
  // Keras's own constructors fill in what is not said.
  return KerasObject("keras.initializers", class_name_, config_);
}

StatusOr<Initializer> Initializer::FromJson(const Json& json) {
  std::string name;
  Json config = Json::MakeObject();
  if (json.is_string()) {
    WEFT_ASSIGN_OR_RETURN(name, json.AsString());
  } else {
    WEFT_ASSIGN_OR_RETURN(const Json* class_name, json.At("class_name"));
    WEFT_ASSIGN_OR_RETURN(name, class_name->AsString());
    if (const Json* found = json.Find("config"); found != nullptr && found->is_object()) {
      for (const JsonMember& member : found->members()) {
        // These say how to split the axes of MultiHeadAttention's kernels; null everywhere else.
        if (member.name == "input_axes" || member.name == "output_axes") continue;
        if (member.name == "dtype") continue;
        config.Set(member.name, member.value);
      }
    }
  }
  Initializer read(name);
  read.config_ = std::move(config);
  WEFT_RETURN_IF_ERROR(read.Make(0).status());
  return read;
}

namespace {

Initializer Drawn(const char* class_name,
                  std::initializer_list<std::pair<const char*, Json>> values, int64_t seed) {
  Json config = Json::MakeObject();
  for (const auto& [name, value] : values) config.Set(name, value);
  config.Set("seed", seed == 0 ? Json() : Json(seed));
  return Initializer(class_name, std::move(config));
}

}  // namespace

Initializer Constant(double value) {
  Json config = Json::MakeObject();
  config.Set("value", value);
  return Initializer("Constant", std::move(config));
}
Initializer RandomNormal(double mean, double stddev, int64_t seed) {
  return Drawn("RandomNormal", {{"mean", mean}, {"stddev", stddev}}, seed);
}
Initializer RandomUniform(double minval, double maxval, int64_t seed) {
  return Drawn("RandomUniform", {{"minval", minval}, {"maxval", maxval}}, seed);
}
Initializer TruncatedNormal(double mean, double stddev, int64_t seed) {
  return Drawn("TruncatedNormal", {{"mean", mean}, {"stddev", stddev}}, seed);
}
Initializer VarianceScaling(double scale, const std::string& mode, const std::string& distribution,
                            int64_t seed) {
  return Drawn("VarianceScaling",
               {{"scale", scale}, {"mode", mode}, {"distribution", distribution}}, seed);
}
Initializer Orthogonal(double gain, int64_t seed) {
  return Drawn("Orthogonal", {{"gain", gain}}, seed);
}
Initializer Identity(double gain) {
  Json config = Json::MakeObject();
  config.Set("gain", gain);
  return Initializer("Identity", std::move(config));
}

}  // namespace weft::estimator
