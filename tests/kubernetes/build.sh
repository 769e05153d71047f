#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds a program from the modules that go.mod pins, once, into the user's cache; prints the path.
#   build.sh kubectl|controlplane|kubelet|reference|kwok|scheduler|helm|kueue|katib
# The last six have a go.mod of their own: they were released with other versions of what they share with Kubernetes.
# Where that names a `tool`, the program is the one that its module has; else it is main.go beside it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
program=${1:?say kubectl, controlplane, kubelet, reference, kwok, scheduler, helm, kueue or katib}
[ -f "$program/main.go" ] || [ -f "$program/go.mod" ] || { echo "build.sh: there is no program $program here" >&2; exit 1; }
package=./$program
sources=("$package"/*.go)
[ ! -f "$program/go.mod" ] || { cd "$program"; package=.; sources=(*.go); }
tool=$(awk '$1 == "tool" {print $2; exit}' go.mod)
[ -z "$tool" ] || { package=$tool; sources=(); }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weft/kubernetes
stamp=$(cat go.mod go.sum "${sources[@]}" | sha256sum | cut -c1-16)
binary=$cache/$program-$stamp
mkdir -p "$cache"
# Tests that run at the same time want the same program: one builds it, the others wait.
exec 9>"$cache/$program.lock"
[ -x "$binary" ] || flock 9
if [ ! -x "$binary" ]; then
  command -v go >/dev/null || { echo "build.sh: there is no Go on this machine: apt-get install golang-go" >&2; exit 1; }
  go=go
  # Go 1.21 and later get the release that go.mod wants by themselves. Older ones, as Debian 12 has, can still
  # fetch it: it is a module, whose files the module cache keeps without their execute bits.
  if [ "$(go env GOVERSION | awk -F. '{print $2 + 0}')" -lt 21 ]; then
    release=$(awk '$1 == "go" {print $2; exit}' go.mod)
    module="golang.org/toolchain@v0.0.1-go$release.$(go env GOOS)-$(go env GOARCH)"
    folder=$(cd / && go mod download -json "$module" | awk -F'"' '$2 == "Dir" {print $4}') || folder=
    [ -d "$folder" ] || { echo "build.sh: cannot fetch $module: go mod download -json $module says why" >&2; exit 1; }
    chmod -R u+w,a+x "$folder/bin" "$folder/pkg/tool"
    go=$folder/bin/go
    export GOROOT=$folder GOTOOLCHAIN=local
  fi
  version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2; exit}' go.mod)
  flags="-s -w"
  if [ -n "$version" ]; then
    minor=$(cut -d. -f2 <<<"$version")
    flags+=" -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
    flags+=" -X k8s.io/component-base/version.gitMinor=$minor -X k8s.io/client-go/pkg/version.gitVersion=$version"
  fi
  CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -ldflags "$flags" -o "$binary.tmp.$$" "$package" >&2
  mv "$binary.tmp.$$" "$binary"
fi
echo "$binary"
