// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/rest_api.h"

#include <memory>
#include <utility>

#include <google/protobuf/util/json_util.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "weft/serving/examples.h"
#include "weft/serving/predict.h"
#include "weft/serving/rest_values.h"
#include "weft/wire/grpc_service.h"

namespace weft::serving {
namespace {

namespace proto = tensorflow::serving;

// "versions/7" or "labels/stable".
Status ReadVersion(const std::string& kind, const std::string& value, proto::ModelSpec* spec) {
  if (absl::EqualsIgnoreCase(kind, "labels")) {
    spec->set_version_label(DecodePercent(value));
    return absl::OkStatus();
  }
  int64_t version = 0;
  if (!absl::EqualsIgnoreCase(kind, "versions") || value.empty() ||
      !absl::c_all_of(value, absl::ascii_isdigit) || !absl::SimpleAtoi(value, &version))
    return InvalidArgument("Failed to convert version: ", value, " to numeric.");
  spec->mutable_version()->set_value(version);
  return absl::OkStatus();
}

StatusOr<std::string> ToJson(const google::protobuf::Message& message, bool proto_names) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = proto_names;
  std::string text;
  const auto written = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (written.ok()) return text;
  return Internal("Failed to convert proto to json. Error: ", written.ToString());
}

std::string ApiName(const std::string& verb) {
  std::string name = verb;
  if (!name.empty()) name[0] = absl::ascii_toupper(static_cast<unsigned char>(name[0]));
  return name;
}

}  // namespace

StatusOr<RestTarget> ParseRestPath(const std::string& method, absl::string_view path) {
  const Status malformed = InvalidArgument("Malformed request: ", method, " ", path);
  const bool asks = method == "POST";
  constexpr absl::string_view kPrefix = "/v1/models";
  if ((!asks && method != "GET") || !absl::StartsWithIgnoreCase(path, kPrefix)) return malformed;
  absl::string_view rest = path.substr(kPrefix.size());
  RestTarget target;
  if (asks) {
    const size_t colon = rest.rfind(':');
    if (colon == absl::string_view::npos) return malformed;
    target.verb = absl::AsciiStrToLower(rest.substr(colon + 1));
    if (target.verb != "predict" && target.verb != "classify" && target.verb != "regress")
      return malformed;
    rest = rest.substr(0, colon);
  }
  if (rest.empty() && !asks) return InvalidArgument("Missing model name in request.");
  if (!absl::ConsumePrefix(&rest, "/")) return malformed;
  std::vector<std::string> parts = absl::StrSplit(rest, '/');
  if (!asks && parts.size() > 1 && absl::EqualsIgnoreCase(parts.back(), "metadata")) {
    target.verb = "metadata";
    parts.pop_back();
  }
  if ((parts.size() != 1 && parts.size() != 3) || parts[0].empty() ||
      absl::StrContains(parts[0], ':'))
    return malformed;
  target.spec.set_name(DecodePercent(parts[0]));
  if (parts.size() == 3) WEFT_RETURN_IF_ERROR(ReadVersion(parts[1], parts[2], &target.spec));
  return target;
}

int HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpResponse RestApi::Finish(StatusOr<std::string> text) const {
  HttpResponse response{.status = HttpStatusOf(text.status()),
                        .content_type = "application/json",
                        .body = text.ok() ? *std::move(text) : WriteRestError(text.status())};
  if (options_.cors) {
    response.headers = {{"Access-Control-Allow-Origin", "*"},
                        {"Access-Control-Allow-Methods", "POST, GET"},
                        {"Access-Control-Allow-Headers", "Content-Type"}};
  }
  return response;
}

// What is no question to a model.
bool RestApi::HandleAside(const HttpRequest& request, const Answer& answer) {
  if (request.method == "GET" && request.path == "/healthz") {
    const bool ready = options_.is_ready();
    answer({.status = ready ? 200 : 503, .body = ready ? "ok\n" : "not ready\n"});
    return true;
  }
  if (request.method == "OPTIONS" && options_.cors) {
    const auto origin = request.headers.find("origin");
    const bool is_page =
        origin != request.headers.end() && (absl::StartsWith(origin->second, "http://") ||
                                            absl::StartsWith(origin->second, "https://"));
    answer(is_page ? Finish(std::string())
                   : Finish(FailedPrecondition("Origin header is missing in CORS preflight")));
    return true;
  }
  if (!options_.tokens.empty()) {
    const auto given = request.headers.find("authorization");
    if (given == request.headers.end() || !wire::HoldsToken(given->second, options_.tokens)) {
      answer(Finish(Status(absl::StatusCode::kUnauthenticated,
                           "This port wants the header 'Authorization: Bearer TOKEN', with a "
                           "token that it knows")));
      return true;
    }
  }
  if (!options_.metrics_path.empty() && request.path == options_.metrics_path) {
    answer({.content_type = "text/plain; version=0.0.4", .body = metrics_.PageText()});
    return true;
  }
  return false;
}

void RestApi::Handle(const HttpRequest& request, Answer answer) {
  if (HandleAside(request, answer)) return;
  const absl::Time begin = absl::Now();
  if (!absl::StartsWithIgnoreCase(request.path, "/v1/")) {
    return answer(Finish(
        NotFound("There is nothing at ", request.path, ": models are under ", "/v1/models/NAME")));
  }
  const StatusOr<RestTarget> target = ParseRestPath(request.method, request.path);
  if (!target.ok()) return answer(Finish(target.status()));
  Ask(*target, request,
      [this, target = *target, begin, answer = std::move(answer)](StatusOr<std::string> text) {
        if (!target.verb.empty() && target.verb != "metadata")
          metrics_.EndRequest(target.spec.name(), ApiName(target.verb), "REST", begin,
                              text.status());
        answer(Finish(std::move(text)));
      });
}

void RestApi::Ask(const RestTarget& target, const HttpRequest& request, const Done& done) {
  if (target.verb.empty() || target.verb == "metadata") return done(Describe(target));
  const StatusOr<Json> body = ParseRestBody(request.body);
  if (!body.ok()) return done(body.status());
  if (target.verb == "predict") return AskPredict(target, *body, done);
  AskExamples(target, *body, done);
}

void RestApi::AskPredict(const RestTarget& target, const Json& body, const Done& done) {
  StatusOr<std::string> name = SignatureNameOf(body);
  if (!name.ok()) return done(name.status());
  StatusOr<std::shared_ptr<const ModelVersion>> model = models_.Find(target.spec);
  if (!model.ok()) return done(model.status());
  const StatusOr<const train::Signature*> signature = FindSignature(**model, *name);
  if (!signature.ok()) {
    return done(InvalidArgument("Serving signature name: \"",
                                name->empty() ? kDefaultSignature : *name,
                                "\" not found in signature def"));
  }
  StatusOr<RestInputs> inputs = ReadRestInputs(body, **signature);
  if (!inputs.ok()) return done(inputs.status());
  const bool by_row = inputs->by_row;
  Predict(*std::move(model),
          {.signature = *std::move(name),
           .inputs = std::move(inputs->tensors),
           .limits = {.timeout = options_.timeout}},
          [by_row, done](StatusOr<NamedTensors> outputs) {
            if (!outputs.ok()) return done(outputs.status());
            done(WriteRestOutputs(*outputs, by_row));
          });
}

void RestApi::AskExamples(const RestTarget& target, const Json& body, const Done& done) {
  const StatusOr<std::string> name = SignatureNameOf(body);
  if (!name.ok()) return done(name.status());
  StatusOr<std::shared_ptr<const ModelVersion>> model = models_.Find(target.spec);
  if (!model.ok()) return done(model.status());
  proto::Input input;
  const Status read = ReadRestExamples(body, &input);
  if (!read.ok()) return done(read);
  const CallLimits limits{.timeout = options_.timeout};
  if (target.verb == "classify") {
    proto::ClassificationRequest request;
    request.mutable_model_spec()->set_signature_name(*name);
    *request.mutable_input() = std::move(input);
    return Classify(*std::move(model), request, limits,
                    [done](StatusOr<proto::ClassificationResponse> response) {
                      if (!response.ok()) return done(response.status());
                      done(WriteRestClasses(response->result()));
                    });
  }
  proto::RegressionRequest request;
  request.mutable_model_spec()->set_signature_name(*name);
  *request.mutable_input() = std::move(input);
  Regress(*std::move(model), request, limits, [done](StatusOr<proto::RegressionResponse> response) {
    if (!response.ok()) return done(response.status());
    done(WriteRestValues(response->result()));
  });
}

StatusOr<std::string> RestApi::Describe(const RestTarget& target) {
  if (target.verb.empty()) {
    proto::GetModelStatusResponse response;
    WEFT_RETURN_IF_ERROR(models_.Describe(target.spec, &response));
    return ToJson(response, /*proto_names=*/false);
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelVersion> model, models_.Find(target.spec));
  proto::ModelSpec spec;
  spec.set_name(model->model());
  spec.mutable_version()->set_value(model->version());
  WEFT_ASSIGN_OR_RETURN(const std::string spec_text, ToJson(spec, /*proto_names=*/true));
  WEFT_ASSIGN_OR_RETURN(const std::string map, ToJson(model->metadata(), /*proto_names=*/true));
  return absl::StrCat("{\n\"model_spec\":", spec_text, ",\n\"metadata\": {\"signature_def\": ", map,
                      "}\n}\n");
}

}  // namespace weft::serving
