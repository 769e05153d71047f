// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "net/http_server.h"

namespace weft {
namespace {

bool IsToken(absl::string_view text) {
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(u) && !absl::StrContains("!#$%&'*+-.^_`|~", c)) return false;
  }
  return !text.empty();
}

bool HasControlCharacter(absl::string_view text) {
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t') return true;
  }
  return false;
}

Status AddHeader(absl::string_view line, HttpRequest* request) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || !IsToken(line.substr(0, colon))) {
    return InvalidArgument("A header line has no name");
  }
  const std::string name = absl::AsciiStrToLower(line.substr(0, colon));
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (HasControlCharacter(value))
    return InvalidArgument("A header holds control characters: ", name);
  const auto [header, added] = request->headers.emplace(name, value);
  // A list of protocols may stand in several lines.
  if (!added && (name == "sec-websocket-protocol" || name == "x-stream-protocol-version"))
    absl::StrAppend(&header->second, ", ", value);
  // Two of these would let two readers see two requests.
  if (!added && (name == "host" || name == "content-length" || name == "transfer-encoding")) {
    return InvalidArgument("A header stands twice: ", name);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<HttpRequest> ParseHttpRequest(absl::string_view head) {
  if (head.empty()) return InvalidArgument("The request is empty");
  std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> start = absl::StrSplit(lines[0], ' ');
  if (start.size() != 3 || !IsToken(start[0]) || !absl::StartsWith(start[1], "/") ||
      HasControlCharacter(start[1])) {
    return InvalidArgument("The request line is not 'METHOD /path HTTP/1.1'");
  }
  if (start[2] != "HTTP/1.1" && start[2] != "HTTP/1.0") {
    return InvalidArgument("Only HTTP/1.0 and HTTP/1.1 are spoken here");
  }
  HttpRequest request;
  request.method = std::string(start[0]);
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(start[1], absl::MaxSplits('?', 1));
  request.path = std::string(target.first);
  request.query = std::string(target.second);
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) break;
    WEFT_RETURN_IF_ERROR(AddHeader(lines[i], &request));
  }
  if (request.headers.count("transfer-encoding") != 0) {
    return InvalidArgument(
        "A request says its length with Content-Length, not with Transfer-Encoding");
  }
  if (start[2] == "HTTP/1.0") request.headers.emplace("connection", "close");
  return request;
}

std::string DecodePercent(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                           absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (is_escape) {
      decoded.append(absl::HexStringToBytes(text.substr(i + 1, 2)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

std::string EncodePercent(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      encoded.push_back(c);
    } else {
      absl::StrAppend(&encoded, "%",
                      absl::AsciiStrToUpper(absl::BytesToHexString(absl::string_view(&c, 1))));
    }
  }
  return encoded;
}

std::map<std::string, std::string> ParseHttpQuery(absl::string_view query) {
  std::map<std::string, std::string> values;
  for (const absl::string_view part : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::string spaced = absl::StrReplaceAll(pair.second, {{"+", " "}});
    values[DecodePercent(pair.first)] = DecodePercent(spaced);
  }
  return values;
}

}  // namespace weft
