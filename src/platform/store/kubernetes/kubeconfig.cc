// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/kubeconfig.h"

#include <cerrno>
#include <cstdlib>

#include <poll.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "net/certificate.h"
#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

constexpr char kAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr uint64_t kMostBytes = 4 << 20;
constexpr absl::Duration kPluginTimeout = absl::Seconds(60);
constexpr absl::Duration kFileLifetime = absl::Minutes(1);

struct ConfigFile {
  std::string path;
  Json config;
};

StatusOr<ConfigFile> ReadConfigFile(const std::string& path) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path, kMostBytes));
  WEFT_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlOrJson(text, path));
  if (documents.size() != 1 || !documents[0].is_object())
    return InvalidArgument(path, ": this is no kubeconfig");
  return ConfigFile{path, std::move(documents[0])};
}

std::string NamesOf(const std::vector<ConfigFile>& files) {
  return absl::StrJoin(files, ":", [](std::string* out, const ConfigFile& file) {
    absl::StrAppend(out, file.path);
  });
}

// Something of a file, and which file that is.
struct Found {
  const Json* value;
  std::string path;
};

// The first entry of that name in the lists of {name, <field>: {...}}.
StatusOr<Found> FindNamed(const std::vector<ConfigFile>& files, const char* list, const char* field,
                          const std::string& name) {
  std::string names;
  for (const ConfigFile& file : files) {
    const Json* const entries = file.config.Find(list);
    if (entries == nullptr) continue;
    for (const Json& entry : entries->items()) {
      const std::string found = StringField(entry, {"name"});
      absl::StrAppend(&names, names.empty() ? "" : ", ", found);
      const Json* const value = entry.Find(field);
      if (found == name && value != nullptr && value->is_object()) return Found{value, file.path};
    }
  }
  return InvalidArgument(NamesOf(files), ": ", list, " has no '", name,
                         "', only: ", names.empty() ? "nothing" : names);
}

// <field>-data in base64, or the contents of the file that <field> names.
StatusOr<std::string> DataOrFile(const Json& entry, const std::string& path,
                                 const std::string& field) {
  const std::string data = StringField(entry, {field + "-data"});
  if (!data.empty()) {
    std::string decoded;
    if (!absl::Base64Unescape(data, &decoded))
      return InvalidArgument(path, ": ", field, "-data is not base64");
    return decoded;
  }
  const std::string name = StringField(entry, {field});
  if (name.empty()) return std::string();
  RealFileSystem files;
  return ReadFile(files, JoinPath(ParentPath(path), name), kMostBytes);
}

Status ReadUser(const Json& user, const std::string& path, ClusterAccess* access) {
  WEFT_ASSIGN_OR_RETURN(access->tls.certificate_pem, DataOrFile(user, path, "client-certificate"));
  WEFT_ASSIGN_OR_RETURN(access->tls.key_pem, DataOrFile(user, path, "client-key"));
  access->token = StringField(user, {"token"});
  if (const std::string file = StringField(user, {"tokenFile"}); !file.empty()) {
    access->token_file = JoinPath(ParentPath(path), file);
  }
  if (const std::string name = StringField(user, {"username"}); !name.empty()) {
    access->basic = absl::StrCat(name, ":", StringField(user, {"password"}));
  }
  const Json* const exec = FindField(user, {"exec"});
  if (exec == nullptr) return absl::OkStatus();
  access->exec.api_version = StringField(*exec, {"apiVersion"});
  access->exec.argv.push_back(StringField(*exec, {"command"}));
  if (access->exec.argv[0].empty())
    return InvalidArgument(path, ": the user's exec names no command");
  if (const Json* const words = FindField(*exec, {"args"})) {
    for (const Json& word : words->items())
      access->exec.argv.push_back(word.AsString().value_or(""));
  }
  if (const Json* const variables = FindField(*exec, {"env"})) {
    for (const Json& variable : variables->items()) {
      access->exec.environment.emplace_back(StringField(variable, {"name"}),
                                            StringField(variable, {"value"}));
    }
  }
  return absl::OkStatus();
}

StatusOr<ClusterAccess> InClusterAccess(const std::string& host, const std::string& port) {
  RealFileSystem files;
  ClusterAccess access;
  access.is_in_cluster = true;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  access.server = absl::StrCat("https://", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", ":", port);
  WEFT_ASSIGN_OR_RETURN(access.tls.authority_pem,
                        ReadFile(files, JoinPath(kAccountFolder, "ca.crt"), kMostBytes));
  access.token_file = JoinPath(kAccountFolder, "token");
  const StatusOr<std::string> space = ReadFile(files, JoinPath(kAccountFolder, "namespace"), 256);
  if (space.ok()) access.namespace_name = std::string(absl::StripAsciiWhitespace(*space));
  access.origin = absl::StrCat("the pod's account in ", kAccountFolder);
  access.check = absl::StrCat("kubectl get serviceaccounts -n ", access.namespace_name);
  return access;
}

// When a token that says so ends; they are three parts, of which the second one is JSON.
absl::Time TokenEnd(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  std::string text;
  if (parts.size() != 3 || !absl::WebSafeBase64Unescape(parts[1], &text)) {
    return absl::InfiniteFuture();
  }
  const int64_t end = IntField(Json::Parse(text).value_or(Json()), {"exp"});
  return end == 0 ? absl::InfiniteFuture() : absl::FromUnixSeconds(end);
}

// All that the program prints on stdout, once it has ended well.
StatusOr<std::string> RunPlugin(const SpawnOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process, Subprocess::Spawn(options));
  std::string out;
  std::string err;
  const absl::Time deadline = absl::Now() + kPluginTimeout;
  while (process->stdout_pipe().is_open() || process->stderr_pipe().is_open()) {
    if (absl::Now() > deadline || out.size() + err.size() > kMostBytes) {
      return absl::UnauthenticatedError(
          absl::StrCat("The credential plug-in takes too long: ", options.argv[0]));
    }
    pollfd poll_fds[2] = {{process->stdout_pipe().get(), POLLIN, 0},
                          {process->stderr_pipe().get(), POLLIN, 0}};
    ::poll(poll_fds, 2, 1000);
    for (auto [pipe, text] :
         {std::pair{&process->stdout_pipe(), &out}, std::pair{&process->stderr_pipe(), &err}}) {
      char buffer[4096];
      const ssize_t count = pipe->is_open() ? ::read(pipe->get(), buffer, sizeof(buffer)) : -1;
      if (count > 0) text->append(buffer, static_cast<size_t>(count));
      if (count == 0) pipe->Reset();
    }
  }
  WEFT_ASSIGN_OR_RETURN(const ExitState exit, process->Wait(deadline - absl::Now()));
  if (exit.ok()) return out;
  return absl::UnauthenticatedError(
      absl::StrCat("The credential plug-in '", options.argv[0], "' failed, ", DescribeExit(exit),
                   ": ", absl::StripAsciiWhitespace(err.substr(0, 1000)),
                   ". To see it fail: ", absl::StrJoin(options.argv, " ")));
}

}  // namespace

StatusOr<ClusterAccess> ReadKubeconfig(const std::string& path, const std::string& context) {
  return ReadKubeconfigs({path}, context);
}

StatusOr<ClusterAccess> ReadKubeconfigs(const std::vector<std::string>& paths,
                                        const std::string& context) {
  std::vector<ConfigFile> files;
  std::string name = context;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(ConfigFile file, ReadConfigFile(path));
    if (name.empty()) name = StringField(file.config, {"current-context"});
    files.push_back(std::move(file));
  }
  const std::string all = NamesOf(files);
  if (name.empty())
    return InvalidArgument(all, ": there is no current-context: choose one with --context");
  WEFT_ASSIGN_OR_RETURN(const Found chosen, FindNamed(files, "contexts", "context", name));
  WEFT_ASSIGN_OR_RETURN(const Found cluster, FindNamed(files, "clusters", "cluster",
                                                       StringField(*chosen.value, {"cluster"})));
  ClusterAccess access;
  access.server = StringField(*cluster.value, {"server"});
  if (access.server.empty())
    return InvalidArgument(cluster.path, ": the cluster of context '", name, "' has no server");
  WEFT_ASSIGN_OR_RETURN(access.tls.authority_pem,
                        DataOrFile(*cluster.value, cluster.path, "certificate-authority"));
  access.tls.skip_verification = BoolField(*cluster.value, {"insecure-skip-tls-verify"});
  access.tls.server_name = StringField(*cluster.value, {"tls-server-name"});
  if (const std::string space = StringField(*chosen.value, {"namespace"}); !space.empty())
    access.namespace_name = space;
  const std::string user_name = StringField(*chosen.value, {"user"});
  access.origin = absl::StrCat("user '", user_name, "' of ", all);
  // kubectl's flag takes one file, its variable several.
  const std::string kubectl =
      files.size() == 1 ? "kubectl --kubeconfig " + all : "KUBECONFIG=" + all + " kubectl";
  access.check = absl::StrCat(kubectl, " --context ", name, " auth whoami");
  if (user_name.empty()) {
    access.origin = absl::StrCat("context '", name, "' of ", all, ", which names no user");
    return access;
  }
  WEFT_ASSIGN_OR_RETURN(const Found user, FindNamed(files, "users", "user", user_name));
  WEFT_RETURN_IF_ERROR(ReadUser(*user.value, user.path, &access));
  return access;
}

std::string LocalKubeconfig() {
  if (const char* const folder = std::getenv("XDG_STATE_HOME"))
    return JoinPath(folder, "weft/kubeconfig");
  const char* const home = std::getenv("HOME");
  return JoinPath(home == nullptr ? "/tmp" : home, ".local/state/weft/kubeconfig");
}

StatusOr<ClusterAccess> FindClusterAccess(const std::string& path, const std::string& context) {
  if (!path.empty()) return ReadKubeconfig(path, context);
  if (const char* const list = std::getenv("KUBECONFIG"); list != nullptr && *list != '\0') {
    std::vector<std::string> paths = absl::StrSplit(list, ':', absl::SkipEmpty());
    std::erase_if(paths, [](const auto& file) { return ::access(file.c_str(), F_OK) != 0; });
    if (!paths.empty()) return ReadKubeconfigs(paths, context);
    return NotFound("There is no file that KUBECONFIG names: ", list);
  }
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host != nullptr && port != nullptr && ::access(kAccountFolder, R_OK) == 0)
    return InClusterAccess(host, port);
  const char* const home = std::getenv("HOME");
  const std::string fallback = JoinPath(home == nullptr ? "/" : home, ".kube/config");
  const std::string local = LocalKubeconfig();
  const bool has_local = ::access(local.c_str(), R_OK) == 0;
  if (context == kLocalContext && has_local) return ReadKubeconfig(local, context);
  if (::access(fallback.c_str(), R_OK) == 0) return ReadKubeconfig(fallback, context);
  if (has_local) return ReadKubeconfig(local, context);
  return NotFound("There is no cluster to talk to: KUBECONFIG is not set and there is no ",
                  fallback, " and no ", local,
                  ". `weft up` starts a control plane on this machine");
}

StatusOr<std::string> Credentials::TokenOfFile() {
  const absl::Time now = clock_->Now();
  if (now < expires_) return token_;
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, access_.token_file, 1 << 20));
  token_ = std::string(absl::StripAsciiWhitespace(text));
  expires_ = now + kFileLifetime;
  return token_;
}

StatusOr<std::string> Credentials::TokenOfPlugin() {
  const absl::Time now = clock_->Now();
  if (now < expires_) return token_;
  SpawnOptions options;
  options.argv = access_.exec.argv;
  options.environment = CurrentEnvironment();
  for (const auto& [name, value] : access_.exec.environment)
    SetEnvironment(&options.environment, name, value);
  Json info;
  info.Set("kind", "ExecCredential");
  info.Set("apiVersion", access_.exec.api_version);
  SetField(&info, {"spec", "interactive"}, false);
  SetEnvironment(&options.environment, "KUBERNETES_EXEC_INFO", info.Dump());
  options.capture_output = true;
  WEFT_ASSIGN_OR_RETURN(const std::string text, RunPlugin(options));
  const StatusOr<Json> credential = Json::Parse(text);
  const std::string token = credential.ok() ? StringField(*credential, {"status", "token"}) : "";
  if (token.empty()) {
    const bool has_certificate =
        credential.ok() && FindField(*credential, {"status", "clientCertificateData"}) != nullptr;
    return absl::UnauthenticatedError(absl::StrCat(
        "The credential plug-in '", options.argv[0], "' printed no ExecCredential with a ",
        has_certificate ? "status.token; a client certificate is taken from client-certificate and "
                          "client-key of the kubeconfig only"
                        : "status.token"));
  }
  token_ = token;
  expires_ = ParseObjectTime(StringField(*credential, {"status", "expirationTimestamp"}));
  if (expires_ == absl::InfinitePast()) expires_ = absl::InfiniteFuture();
  return token_;
}

StatusOr<std::string> Credentials::Token() {
  if (!access_.token.empty()) return access_.token;
  if (access_.token_file.empty() && access_.exec.argv.empty()) return std::string();
  StatusOr<std::string> token = access_.token_file.empty() ? TokenOfPlugin() : TokenOfFile();
  if (!token.ok()) return Annotate(token.status(), access_.origin);
  return token;
}

StatusOr<std::string> Credentials::AuthorizationHeader() {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(const std::string token, Token());
  if (!token.empty()) return absl::StrCat("Bearer ", token);
  if (access_.basic.empty()) return std::string();
  std::string encoded;
  absl::Base64Escape(access_.basic, &encoded);
  return absl::StrCat("Basic ", encoded);
}

std::string Credentials::DescribeRefusal() const {
  absl::MutexLock lock(&mutex_);
  std::string what = access_.basic.empty() ? "there is neither token nor client certificate"
                                           : "its name or password is wrong";
  absl::Time end = absl::InfiniteFuture();
  if (!access_.tls.certificate_pem.empty()) {
    what = "its client certificate is not of the server's authority, or its owner is gone";
    end = CertificateEnd(access_.tls.certificate_pem).value_or(end);
  }
  const std::string& token = access_.token.empty() ? token_ : access_.token;
  if (!token.empty()) {
    what = "its token is not of this cluster, or was withdrawn";
    end = TokenEnd(token);
  }
  if (end < clock_->Now()) {
    what = absl::StrCat("its ", token.empty() ? "client certificate" : "token", " ended at ",
                        FormatObjectTime(end));
  }
  std::string text = absl::StrCat(access_.server, " does not accept ", access_.origin, ": ", what);
  if (!access_.token_file.empty()) absl::StrAppend(&text, " (", access_.token_file, ")");
  if (!access_.check.empty()) absl::StrAppend(&text, ". Renew it, then: ", access_.check);
  return text;
}

void Credentials::Forget() {
  absl::MutexLock lock(&mutex_);
  expires_ = absl::InfinitePast();
}

}  // namespace weft::platform
