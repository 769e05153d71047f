#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds kubectl or controlplane from the modules that go.mod pins, once, into the user's cache; prints the path.
#   build.sh kubectl|controlplane
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
program=${1:?say kubectl or controlplane}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weft/kubernetes
stamp=$(cat go.mod go.sum "$program"/*.go | sha256sum | cut -c1-16)
binary=$cache/$program-$stamp
if [ ! -x "$binary" ]; then
  command -v go >/dev/null || { echo "build.sh: there is no Go on this machine: install golang 1.21 or newer" >&2; exit 1; }
  mkdir -p "$cache"
  version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' go.mod)
  minor=$(cut -d. -f2 <<<"$version")
  flags="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
  flags+=" -X k8s.io/component-base/version.gitMinor=$minor -X k8s.io/client-go/pkg/version.gitVersion=$version"
  CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "$flags" -o "$binary.tmp.$$" "./$program" >&2
  mv "$binary.tmp.$$" "$binary"
fi
echo "$binary"
