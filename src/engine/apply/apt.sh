# Package functions, apt. Configuration files that the states write stay as they are (confdef, confold).
# unsafe-io: dpkg does not sync every file; one sync of the whole after the transaction is as safe against a
# power cut later on, and takes a fraction of the time. A cut during it is met by the next run.

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none

apt_get() {
    apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        -o Dpkg::Options::=--force-unsafe-io -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=false \
        -o Acquire::Languages=none -o APT::Update::Error-Mode=any "$@" 3<&-
}

refresh_index() { apt_get update; }

# Packages must not start services that are not configured yet: the states start them. The policy
# (invoke-rc.d(8)) holds only while this process lives, so that a killed run does not leave it behind; one
# that somebody else has made is respected.
policy=/usr/sbin/policy-rc.d
is_ours() { case $(cat "$policy" 2>/dev/null) in *"written by metalform"*) ;; *) return 1 ;; esac; }
forbid_starts() {
    if [ -e "$policy" ] && ! is_ours; then return 0; fi
    printf '#!/bin/sh\n# written by metalform\nkill -0 %s 2>/dev/null && exit 101\nexit 0\n' "$$" >"$policy" &&
        chmod 0755 "$policy"
}
allow_starts() { if is_ours; then rm -f "$policy"; fi; }

# apt-get arguments; a dpkg that was killed last time is brought to its end first
transaction() {
    apt_get "$@" && return
    status=$?
    [ -n "$(ls -A /var/lib/dpkg/updates)" ] || return "$status"
    dpkg --force-confdef --force-confold --configure -a 3<&- && apt_get "$@"
}

# name[=version]...
install_packages() {
    forbid_starts || return
    transaction --no-install-recommends --allow-change-held-packages --allow-downgrades install -- "$@"
    status=$?
    allow_starts
    [ "$status" = 0 ] || return "$status"
    sync -f /usr /var/lib/dpkg
}

remove_packages() { transaction --allow-change-held-packages purge -- "$@"; }

hold_packages() { printf '%s hold\n' "$@" | dpkg --set-selections; }
release_packages() { printf '%s install\n' "$@" | dpkg --set-selections; }
