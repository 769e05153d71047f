#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image of weft as an OCI archive, without a registry, a daemon or root: the program and the libraries that it needs.
#   build.sh [--weft build/bin/weft] [--program FILE]... [--root DIR] [--tag weft/weft:latest] [--output weft-image.tar]
# --program adds a program beside weft. --root is a root file system to start from, as debootstrap makes it, for tasks
# that want a shell or Python; without it the image holds nothing else.
set -euo pipefail
weft=build/bin/weft root= tag=weft/weft:latest output=weft-image.tar programs=()
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "build.sh: $1 wants a value, or is not known; see the head of this file" >&2; exit 2; }
  case $1 in
    --weft) weft=$2 ;;
    --program) programs+=("$2") ;;
    --root) root=$2 ;;
    --tag) tag=$2 ;;
    --output) output=$2 ;;
    *) echo "build.sh: there is no option $1; see the head of this file" >&2; exit 2 ;;
  esac
  shift 2
done
[ -x "$weft" ] || { echo "build.sh: there is no program $weft: build it, or say where it is with --weft" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$tree" "$work/oci/blobs/sha256"
[ -z "$root" ] || cp -a "$root/." "$tree/"
mkdir -p "$tree"/usr/{bin,lib} "$tree"/{etc,tmp}
chmod 1777 "$tree/tmp"
for name in lib lib64 bin; do [ -e "$tree/$name" ] || ln -s "usr/$name" "$tree/$name"; done
mkdir -p "$tree/usr/lib64"
# Into the folder of the system's loader, whichever layout the root has: it looks there without being told.
libraries=$tree/usr/lib/$(uname -m)-linux-gnu
mkdir -p "$libraries"
for program in "$weft" "${programs[@]}"; do
  cp -L "$program" "$tree/usr/bin/"
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r library; do
    [ -e "$libraries/$(basename "$library")" ] || cp -L "$library" "$libraries/"
  done
  ldd "$program" | awk '$1 ~ /^\/.*ld-linux/ {print $1}' | while read -r loader; do
    mkdir -p "$(dirname "$tree$loader")"
    [ -e "$tree$loader" ] || cp -L "$loader" "$tree$loader"
  done
done
strip --strip-unneeded "$tree/usr/bin/$(basename "$weft")" 2>/dev/null || true
grep -qs '^weft:' "$tree/etc/passwd" || echo 'weft:x:65532:65532::/tmp:/sbin/nologin' >> "$tree/etc/passwd"
grep -qs '^weft:' "$tree/etc/group" || echo 'weft:x:65532:' >> "$tree/etc/group"
# TLS to others than the cluster's own API server.
if [ ! -e "$tree/etc/ssl/certs/ca-certificates.crt" ] && [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  mkdir -p "$tree/etc/ssl/certs"
  cp -L /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/"
fi

# The same input gives the same bytes.
epoch=${SOURCE_DATE_EPOCH:-0}
pack() { tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --format=gnu -C "$1" -cf - .; }
# Moves a file into the layout: prints its digest and size.
store() {
  local digest size
  digest=$(sha256sum "$1" | cut -d' ' -f1)
  size=$(stat -c %s "$1")
  mv "$1" "$work/oci/blobs/sha256/$digest"
  echo "$digest $size"
}
pack "$tree" > "$work/layer.tar"
diff_id=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
gzip -n "$work/layer.tar"
read -r layer layer_size < <(store "$work/layer.tar.gz")
case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
esac
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
cat > "$work/config.json" <<JSON
{"created":"$created","architecture":"$architecture","os":"linux","config":{"User":"65532:65532","Env":["PATH=/usr/local/bin:/usr/bin:/bin"],"Entrypoint":["weft"],"WorkingDir":"/tmp"},"rootfs":{"type":"layers","diff_ids":["sha256:$diff_id"]},"history":[{"created":"$created","created_by":"deploy/image/build.sh"}]}
JSON
read -r config config_size < <(store "$work/config.json")
cat > "$work/manifest.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$layer","size":$layer_size}]}
JSON
read -r manifest manifest_size < <(store "$work/manifest.json")
full=$tag
case $full in */*/*) ;; */*) full=docker.io/$full ;; *) full=docker.io/library/$full ;; esac
cat > "$work/oci/index.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$manifest_size,"annotations":{"io.containerd.image.name":"$full","org.opencontainers.image.ref.name":"${tag##*:}"},"platform":{"architecture":"$architecture","os":"linux"}}]}
JSON
echo '{"imageLayoutVersion":"1.0.0"}' > "$work/oci/oci-layout"
pack "$work/oci" > "$output"
cat <<TEXT
$output: $(($(stat -c %s "$output") / 1024 / 1024)) MiB, $full, sha256:$manifest
Load it where the pods shall run:
  ctr --namespace k8s.io images import $output
  kind load image-archive $output
  skopeo copy oci-archive:$output docker://REGISTRY/$tag
TEXT
