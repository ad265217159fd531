# shellcheck shell=bash
# A new Debian or Ubuntu root of the release of this machine, made by debootstrap, for scripts that source this file:
# `new_root` makes it, `inside COMMAND...` runs a command in it, and it is removed when the script ends. The sourcing
# script defines `fail`. It needs root. A script that wants a root with nothing of this machine calls `bare_root` first,
# and then `join_network`.

[ "$(id -u)" = 0 ] || fail "must be root: it makes device nodes and changes the root"
command -v apt-get >/dev/null || fail "needs Debian or Ubuntu"

if ! command -v debootstrap >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap </dev/null >/dev/null ||
    fail "no debootstrap, and apt-get could not install it"
fi

suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
# shellcheck disable=SC2016  # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  awk -v suite="$suite" '$2 == suite { print $1; exit }')
if [ -z "$suite" ] || [ -z "$mirror" ]; then fail "apt knows no mirror for this system's release '$suite'"; fi

own=$(mktemp -d "${TMPDIR:-/var/tmp}/fullbore-root-XXXXXX")
# Other users of this machine must not look into the folder; users inside the new root must.
root=$own/root
mkdir -m 755 "$root"

# There are no bind mounts, so that nothing of this machine can be deleted. Only proc is mounted, and is unmounted
# first.
mounts() { awk -v root="$root/" 'index($2, root) == 1 { print $2 }' /proc/self/mounts | sort -r; }
clean_up() {
  local place
  mounts | while read -r place; do umount "$place" || umount --lazy "$place"; done
  [ -z "$(mounts)" ] || fail "still mounted below $root: it is left as it is"
  rm -rf --one-file-system "$own"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Runs a command in the new root. Its environment contains nothing of this machine's except the proxy settings.
# `programs` may name a folder of programs besides the system's own.
inside() {
  local name settings=(PATH="${programs:+$programs:}/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LANG=C.UTF-8)
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [ -n "${!name:-}" ]; then settings+=("$name=${!name}"); fi
  done
  # Python has its own certificates; the system's certificates must be used.
  settings+=(SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt)
  nice /usr/sbin/chroot "$root" /usr/bin/env -i "${settings[@]}" DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

copy_network_settings() {
  local file
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    if [ -f "$file" ] && grep -q '^ *Acquire' "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
  done
  if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/"; fi
  for file in "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    if [ -f "$file" ]; then install -D -m 600 "$file" "$root/root/.config/pip/pip.conf"; fi
  done
  mkdir -p "$root/usr/local/share/ca-certificates"
  for file in /usr/local/share/ca-certificates/*.crt; do
    if [ -f "$file" ]; then cp "$file" "$root/usr/local/share/ca-certificates/"; fi
  done
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

# Makes the root. debootstrap writes the name and the name servers of this machine into it, and a log.
bare_root() {
  nice debootstrap --variant=minbase "$suite" "$root" "$mirror" || return 1
  mounts | grep -v "^$root/proc$" && fail "debootstrap has mounted more than proc"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  local node name major minor
  for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9"; do
    read -r name major minor <<<"$node"
    [ -e "$root/dev/$name" ] || mknod -m 666 "$root/dev/$name" c "$major" "$minor"
  done
}

# Lets the root use the network as this machine does, and reads the lists of apt.
join_network() {
  copy_network_settings
  inside apt-get -qq update
}

new_root() { bare_root && join_network; }
