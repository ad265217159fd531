# shellcheck shell=bash disable=SC2154
# The image of Packaging/Containerfile as a file, for scripts/package, which sources scripts/new-root.sh before.
# `image_file PACKAGE FILE` writes it, from the new root as `bare_root` has left it, and `try_image FILE` examines and
# uses it. The image has nothing of this machine.

if ! command -v buildah >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends buildah </dev/null >/dev/null ||
    fail "no buildah, which makes the image, and apt-get could not install it: apt-get install buildah"
fi

# store NAME COMMAND...: runs buildah with images and containers of its own.
store() {
  local folder=$own/$1
  shift
  nice buildah --root "$folder/images" --runroot "$folder/run" --storage-driver vfs "$@"
}

# The sources of apt that everybody has, in place of the mirror of this machine.
public_sources() {
  case "$(sed -n 's/^ID=//p' /etc/os-release)" in
    debian)
      echo "deb http://deb.debian.org/debian $suite main"
      echo "deb http://deb.debian.org/debian $suite-updates main"
      echo "deb http://deb.debian.org/debian-security $suite-security main"
      ;;
    ubuntu)
      local mirror=http://archive.ubuntu.com/ubuntu
      [ "$(dpkg --print-architecture)" = amd64 ] || mirror=http://ports.ubuntu.com/ubuntu-ports
      printf "deb $mirror %s main universe\n" "$suite" "$suite-updates" "$suite-security"
      ;;
    *) fail "this system is neither Debian nor Ubuntu, so the sources of apt for an image are not known" ;;
  esac
}

# What debootstrap has written besides packages is of this machine or of this hour.
base_archive() {
  local left
  rm -f "$root/etc/resolv.conf" "$root/etc/hostname" "$root/etc/machine-id" "$root/var/lib/dbus/machine-id"
  find "$root/var/log" -type f -delete
  left=(--exclude='./proc/*' --exclude='./dev/*' --exclude='./tmp/*' --exclude='./var/cache/apt/*')
  left+=(--exclude='./var/lib/apt/lists/*' --exclude='./var/cache/ldconfig/aux-cache' --exclude='*-old')
  tar -C "$root" "${left[@]}" --numeric-owner -cf "$1" .
}

image_file() {
  local container context=$own/context
  mkdir -p "$context"
  cp "$1" "$context/fullbore.deb"
  base_archive "$own/base.tar"
  public_sources >"$own/public.list"
  # While packages are installed, apt reads from the mirrors of this machine. The proxies of its environment count too.
  # shellcheck disable=SC2016  # apt's own variables
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v suite="$suite" '$3 == suite || index($3, suite "-") == 1' | sort -u >"$own/own.list"
  container=$(store build from scratch)
  store build add --quiet "$container" "$own/base.tar" / >/dev/null
  store build add --quiet "$container" "$own/public.list" /etc/apt/sources.list >/dev/null
  store build commit --quiet --rm "$container" base >/dev/null
  rm "$own/base.tar"
  store build bud --quiet --isolation chroot --pull-never --build-arg BASE=localhost/base -t fullbore \
    --volume "$own/own.list:/etc/apt/sources.list:ro" -f Packaging/Containerfile "$context" >/dev/null
  rm -f "$2"
  store build push --quiet localhost/fullbore "oci-archive:$2:fullbore:latest"
}

# try_image FILE: loads the file where no other image is. Its files must have nothing of this machine, and its own command is
# run in it, on a free port.
try_image() {
  local container mounted words setting
  container=$(store try from "oci-archive:$1")
  mounted=$(store try mount "$container")
  sh Packaging/debian/check-image "$mounted"
  for setting in "${http_proxy:-}" "${https_proxy:-}" "${HTTP_PROXY:-}" "${HTTPS_PROXY:-}" \
    "$(eval "$(apt-config shell proxy Acquire::http::Proxy)" && echo "${proxy:-}")"; do
    if [ -n "$setting" ] && grep -rqF "$setting" "$mounted/etc" "$mounted/var"; then fail "the image names the proxy $setting"; fi
    if [ -n "$setting" ] && store try inspect "$container" | grep -qF "$setting"; then fail "the image is set to the proxy $setting"; fi
  done
  # shellcheck disable=SC2016  # the template of buildah
  words=$(store try inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container" | tr -d '[]')
  [ "$words" = "fullbore serve /data --listen 0.0.0.0:8080 --token-file /token" ] || fail "the image runs: $words"
  # A folder of a container that runs is as the user has it, and a port may be taken on this machine.
  head -c 24 /dev/urandom | base64 >"$mounted/token"
  chmod 644 "$mounted/token"
  store try run --isolation chroot "$container" -- sh -s "${words/:8080/:0}" <Packaging/debian/try-image
}
