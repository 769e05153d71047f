// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/kubeconfig_file.h"

#include "absl/strings/escaping.h"
#include "absl/strings/substitute.h"

#include "platform/apiserver/server_identity.h"

namespace weft::platform {

Status WriteKubeconfig(const std::string& path, const std::string& name,
                       const std::string& server_url, const std::string& authority_pem,
                       const std::string& token) {
  std::string authority;
  absl::Base64Escape(authority_pem, &authority);
  const std::string text = absl::Substitute(
      "apiVersion: v1\n"
      "kind: Config\n"
      "current-context: $0\n"
      "clusters:\n"
      "- name: $0\n"
      "  cluster:\n"
      "    server: $1\n"
      "    certificate-authority-data: $2\n"
      "users:\n"
      "- name: $0\n"
      "  user:\n"
      "    token: $3\n"
      "contexts:\n"
      "- name: $0\n"
      "  context: {cluster: $0, user: $0, namespace: default}\n",
      name, server_url, authority, token);
  return WritePrivateFile(path, text);
}

}  // namespace weft::platform
