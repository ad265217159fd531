# shellcheck shell=bash disable=SC2154
# systemd in the new root, for scripts/package, which sources scripts/new-root.sh before: `booted SCRIPT` runs a script of the
# root as a service of a systemd that is the first process there.

# The namespaces are new, so that systemd has nothing of this machine but its kernel: no files outside the new root, no network,
# and no kernel setting that it could change. That comes before systemd starts, which empties /tmp first of all, and a step that
# fails ends the shell. Returns 3 if systemd cannot run here at all.
booted() {
  local log=$root/root/booted.log
  [ -x "$root/lib/systemd/systemd" ] || fail "there is no systemd in the new root"
  [ ! "$root" -ef / ] || fail "the new root is the root of this machine"
  rm -f "$log"
  # Tasks of a machine's start concern the kernel, and not the units.
  local unit
  for unit in systemd-sysctl systemd-modules-load systemd-binfmt systemd-random-seed; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
  done
  cat >"$root/etc/systemd/system/booted.service" <<UNIT
[Unit]
SuccessAction=exit-force
FailureAction=exit-force

[Service]
Type=oneshot
ExecStart=/bin/sh $1
StandardOutput=append:/root/booted.log
StandardError=append:/root/booted.log
TimeoutStartSec=400
UNIT
  local status=0
  # shellcheck disable=SC2016  # variables of the inner shell
  timeout 600 unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net /bin/sh -euc '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    cd "$1"
    pivot_root . mnt
    cd /
    mount -t proc proc /proc
    umount --lazy /mnt
    [ ! -e /mnt/etc ]
    [ -f "$2" ]
    mount --bind /proc/sys /proc/sys
    mount -o remount,bind,ro /proc/sys
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs -o mode=755 tmpfs /sys
    mkdir -p /sys/fs/cgroup
    mount -t cgroup2 cgroup /sys/fs/cgroup
    # systemd gives credentials to its services by mounts that it expects to be shared.
    mount --make-rshared /
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=booted.service --log-target=null
  ' sh "$root" "$1" </dev/null >/dev/null 2>&1 || status=$?
  [ -s "$log" ] || return 3
  cat "$log"
  [ "$status" = 0 ]
}
