# Package functions, apt. Configuration files that the states write stay as they are (confdef, confold).
# unsafe-io: dpkg does not sync every file; one sync of the whole after the transaction is as safe against a
# power cut later on, and takes a fraction of the time. A cut during it is met by the next run.

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none

# Another's lock is waited for this long, seconds.
patience=120

# A command, and again as long as another process holds a lock that it needs; the operator is told who. apt's own
# DPkg::Lock::Timeout tells nobody, and is not for the lock of its lists.
patiently() {
    waited=0 told=
    while :; do
        before=$(stat -c %s -- "$log")
        # Neither the payload nor the way out is for what it starts.
        "$@" 3<&- 4>&- && return
        status=$?
        holder=$(tail -c "+$((before + 1))" -- "$log" | sed -n \
            -e 's/^E: \(Could not get lock .*held by process.*\)$/\1/p' \
            -e 's/^dpkg: error: \(.* was locked by .*\)$/\1/p' | tail -n 1)
        [ -n "$holder" ] || return "$status"
        if [ "$waited" -ge "$patience" ]; then
            echo "$holder; waited for $patience s"
            return "$status"
        fi
        [ "$holder" = "$told" ] || say wait "$task" "$(printf %s "$holder" | base64 -w0)" >&4
        told=$holder waited=$((waited + 1))
        sleep 1
    done
}

apt_get() {
    patiently apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        -o Dpkg::Options::=--force-unsafe-io -o DPkg::Lock::Timeout=0 -o Dpkg::Use-Pty=false \
        -o Acquire::Languages=none -o APT::Update::Error-Mode=any "$@"
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
    patiently dpkg --force-confdef --force-confold --configure -a && apt_get "$@"
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

# hold or install, names...
select_packages() {
    selection=$1
    shift
    printf "%s $selection\n" "$@" | dpkg --set-selections
}
hold_packages() { patiently select_packages hold "$@"; }
release_packages() { patiently select_packages install "$@"; }
