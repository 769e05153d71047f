// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/warm_start.h"

#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"

#include "re2/re2.h"
#include "weft/estimator/model_fn/checkpoints.h"

namespace weft::estimator {
namespace {

const std::string& NameInCheckpoint(const train::Variable& variable) {
  return variable.IsPart() ? variable.whole_name : variable.name;
}

// The value in rows of the new vocabulary's order; rows that the old one has not keep `v`'s first
// value.
Endpoint InNewOrder(GraphBuilder& b, const train::Variable& v, const std::string& old_name,
                    const std::string& checkpoint, const VocabularyChange& change) {
  const int64_t rows = v.shape.dim(0), columns = v.shape.dim(1);
  Node* remap =
      b.AddNode("GenerateVocabRemapping",
                {b.Scalar<std::string>(change.new_file), b.Scalar<std::string>(change.old_file)},
                {{"new_vocab_offset", int64_t{0}},
                 {"num_new_vocab", change.new_size},
                 {"old_vocab_size", change.old_size}});
  if (remap == nullptr) return {};
  Endpoint from = {remap, 0};
  if (change.num_oov_buckets > 0) {
    const std::vector<int64_t> none(static_cast<size_t>(change.num_oov_buckets), -1);
    const Endpoint fresh =
        b.Constant(Tensor::FromSpan<int64_t>(Shape{change.num_oov_buckets}, none));
    from = b.Op("ConcatV2", {std::vector<Endpoint>{from, fresh}, b.Scalar<int32_t>(0)});
  }
  // Rows that are not in the old vocabulary take theirs from the variable itself.
  const Endpoint own = b.Op("ReadVariableOp", {v.handle}, {{"dtype", v.dtype}});
  const Endpoint missing = b.Op("Less", {from, b.Op("ZerosLike", {from})});
  const Endpoint where = b.Op("Reshape", {b.Op("Where", {missing}, {{"T", DType::kBool}}),
                                          b.Constant(Tensor::Vector<int32_t>({-1}))});
  const Endpoint fresh = b.Op("Reshape", {b.Op("GatherV2", {own, where, b.Scalar<int32_t>(0)}),
                                          b.Constant(Tensor::Vector<int32_t>({-1}))});
  return b.Op("LoadAndRemapMatrix",
              {b.Scalar<std::string>(checkpoint), b.Scalar<std::string>(old_name), from,
               b.Constant(Tensor::FromSpan<int64_t>(Shape{0}, {})), fresh},
              {{"num_rows", rows}, {"num_cols", columns}});
}

Status CheckNames(const train::Program& program, const WarmStart& warm_start) {
  std::set<std::string> there;
  for (const train::Variable& v : program.variables()) there.insert(NameInCheckpoint(v));
  const auto check = [&](const std::string& name) {
    if (there.contains(name)) return absl::OkStatus();
    return InvalidArgument("Warm start: the model has no variable '", name, "'");
  };
  for (const auto& [name, unused] : warm_start.previous_names) WEFT_RETURN_IF_ERROR(check(name));
  for (const auto& [name, change] : warm_start.vocabularies) {
    WEFT_RETURN_IF_ERROR(check(name));
    for (const train::Variable& v : program.variables()) {
      if (NameInCheckpoint(v) != name) continue;
      if (v.IsPart() || v.shape.rank() != 2 ||
          v.shape.dim(0) != change.new_size + change.num_oov_buckets) {
        return InvalidArgument("Warm start: '", name, "' has shape ", v.shape.ToString(),
                               ", and its new vocabulary ",
                               change.new_size + change.num_oov_buckets, " rows");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status AddWarmStart(train::Program& program, const WarmStart& warm_start,
                    train::Scaffold* scaffold) {
  if (warm_start.checkpoint.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointAt(warm_start.checkpoint));
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 pattern(warm_start.variables, quiet);
  if (!pattern.ok()) {
    return InvalidArgument("Warm start: '", warm_start.variables,
                           "' is no pattern: ", pattern.error());
  }
  WEFT_RETURN_IF_ERROR(CheckNames(program, warm_start));
  GraphBuilder& b = program.builder();
  const std::string outer = b.device();
  std::vector<Node*> assigned;
  b.PushName("warm_start");
  for (const train::Variable& v : program.TrainableVariables()) {
    const std::string& name = NameInCheckpoint(v);
    if (!RE2::PartialMatch(name, absl::StrCat("^(?:", warm_start.variables, ")"))) continue;
    const auto previous = warm_start.previous_names.find(name);
    const std::string old_name =
        previous == warm_start.previous_names.end() ? name : previous->second;
    if (!v.device.empty()) b.set_device(v.device);
    const auto change = warm_start.vocabularies.find(name);
    Endpoint value;
    if (change != warm_start.vocabularies.end()) {
      value = InNewOrder(b, v, old_name, checkpoint, change->second);
    } else {
      value = b.Op(
          "RestoreV2",
          {b.Scalar<std::string>(checkpoint), b.Constant(Tensor::Vector<std::string>({old_name})),
           b.Constant(Tensor::Vector<std::string>({v.SliceText()}))},
          {{"dtypes", std::vector<DType>{v.dtype}}});
      value = b.Op("EnsureShape", {value}, {{"shape", PartialShape(v.shape)}}, v.name);
    }
    assigned.push_back(b.AddNode("AssignVariableOp", {v.handle, value}, {{"dtype", v.dtype}}));
    b.set_device(outer);
  }
  b.PopName();
  WEFT_RETURN_IF_ERROR(Annotate(b.status(), "Warm start"));
  if (assigned.empty()) {
    return InvalidArgument("Warm start: no trainable variable begins with '", warm_start.variables,
                           "'");
  }
  const std::string group = program.Group(assigned, "warm_start_all")->name();
  scaffold->init_function = [group, before = scaffold->init_function,
                             checkpoint](session::Session& session) -> Status {
    if (before) WEFT_RETURN_IF_ERROR(before(session));
    return Annotate(session.Run({}, {}, {group}, nullptr),
                    absl::StrCat("Cannot warm start from ", checkpoint));
  };
  return absl::OkStatus();
}

}  // namespace weft::estimator
