// SPDX-License-Identifier: Apache-2.0
#include "platform/object/go_template.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft::platform {
namespace {

constexpr size_t kMostPieces = 10000;
constexpr size_t kMostOutput = size_t{4} << 20;
constexpr int kDeepest = 32;

// Text, or what stands between braces.
struct Piece {
  bool is_action = false;
  absl::string_view text;
};

bool IsTrue(const Json* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_bool()) return value->AsBool().value_or(false);
  if (value->is_string()) return !value->AsString().value_or("").empty();
  if (value->is_number()) return value->AsDouble().value_or(0) != 0;
  return value->size() > 0;
}

StatusOr<std::vector<Piece>> Cut(absl::string_view text) {
  std::vector<Piece> pieces;
  bool trims = false;
  while (!text.empty()) {
    const size_t open = text.find("{{");
    absl::string_view plain = text.substr(0, open);
    if (trims) plain = absl::StripLeadingAsciiWhitespace(plain);
    if (open == text.npos) {
      pieces.push_back({false, plain});
      break;
    }
    const size_t close = text.find("}}", open);
    if (close == text.npos) {
      return InvalidArgument("the template has '{{' without '}}': ",
                             text.substr(open, std::min<size_t>(40, text.size() - open)));
    }
    absl::string_view action = text.substr(open + 2, close - open - 2);
    if (absl::StartsWith(action, "- ")) {
      action.remove_prefix(2);
      plain = absl::StripTrailingAsciiWhitespace(plain);
    }
    trims = absl::EndsWith(action, " -");
    if (trims) action.remove_suffix(2);
    pieces.push_back({false, plain});
    pieces.push_back({true, absl::StripAsciiWhitespace(action)});
    text.remove_prefix(close + 2);
    if (pieces.size() > kMostPieces)
      return InvalidArgument("the template has more than ", kMostPieces, " pieces");
  }
  return pieces;
}

class Renderer {
 public:
  explicit Renderer(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  StatusOr<std::string> Render(const Json& data) {
    size_t at = 0;
    WEFT_RETURN_IF_ERROR(RenderBlock(data, &at, /*writes=*/true, 0));
    if (at < pieces_.size())
      return InvalidArgument("the template has a {{", pieces_[at].text, "}} too many");
    return std::move(out_);
  }

 private:
  static bool Ends(absl::string_view action) { return action == "end" || action == "else"; }

  // Until the action that ends the block, at which `at` then stands.
  Status RenderBlock(const Json& dot, size_t* at, bool writes, int depth) {
    if (depth > kDeepest) return InvalidArgument("the template is nested too deeply");
    for (; *at < pieces_.size(); ++*at) {
      const Piece& piece = pieces_[*at];
      if (!piece.is_action) {
        if (writes) out_.append(piece.text.data(), piece.text.size());
        if (out_.size() > kMostOutput)
          return InvalidArgument("the template gives more than ", kMostOutput, " bytes");
        continue;
      }
      if (Ends(piece.text)) return absl::OkStatus();
      if (absl::StartsWith(piece.text, "/*")) continue;
      WEFT_RETURN_IF_ERROR(RenderAction(piece.text, dot, at, writes, depth));
    }
    return absl::OkStatus();
  }

  Status RenderAction(absl::string_view action, const Json& dot, size_t* at, bool writes,
                      int depth) {
    for (const absl::string_view word : {"range", "with", "if"}) {
      absl::string_view rest = action;
      if (!absl::ConsumePrefix(&rest, word) || rest.empty() || rest[0] != ' ') continue;
      const Json* value = nullptr;
      if (writes) {
        WEFT_ASSIGN_OR_RETURN(value, Find(absl::StripAsciiWhitespace(rest), dot));
      }
      ++*at;
      return RenderControl(word, value, dot, at, writes, depth);
    }
    if (!writes) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const Json* const value, Find(action, dot));
    out_ += value->is_string() ? value->AsString().value_or("") : value->Dump();
    return absl::OkStatus();
  }

  Status RenderControl(absl::string_view word, const Json* value, const Json& dot, size_t* at,
                       bool writes, int depth) {
    const bool holds = writes && IsTrue(value);
    const size_t begin = *at;
    if (word == "range" && holds && value->is_array()) {
      for (const Json& item : value->items()) {
        *at = begin;
        WEFT_RETURN_IF_ERROR(RenderBlock(item, at, true, depth + 1));
      }
    } else {
      WEFT_RETURN_IF_ERROR(
          RenderBlock(word == "with" && holds ? *value : dot, at, holds, depth + 1));
    }
    if (*at < pieces_.size() && pieces_[*at].text == "else" && pieces_[*at].is_action) {
      ++*at;
      WEFT_RETURN_IF_ERROR(RenderBlock(dot, at, writes && !holds, depth + 1));
    }
    if (*at >= pieces_.size())
      return InvalidArgument("the template has a {{", word, "}} without {{end}}");
    return absl::OkStatus();
  }

  static StatusOr<const Json*> Find(absl::string_view path, const Json& dot) {
    if (path == ".") return &dot;
    if (!absl::StartsWith(path, ".")) {
      return InvalidArgument("the template has {{", path,
                             "}}, which is not understood: fields as {{.Trial}}, range, with, if, "
                             "else and end are");
    }
    const Json* value = &dot;
    for (const absl::string_view name : absl::StrSplit(path.substr(1), '.')) {
      value = value->Find(name);
      if (value == nullptr)
        return InvalidArgument("the template names {{", path, "}}, and there is no '", name, "'");
    }
    return value;
  }

  const std::vector<Piece> pieces_;
  std::string out_;
};

}  // namespace

StatusOr<std::string> RenderGoTemplate(absl::string_view text, const Json& data) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Piece> pieces, Cut(text));
  return Renderer(std::move(pieces)).Render(data);
}

}  // namespace weft::platform
