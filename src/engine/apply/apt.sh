# Package functions, apt. Configuration files that the states write are kept (confdef, confold). unsafe-io: dpkg does
# not sync every file; one sync of everything after the transaction protects against a later power failure as well, and
# takes a fraction of the time. The next run repairs a transaction that a power failure interrupted, as `unsynced` has it.

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none

# How long a lock of another process is waited for, in seconds.
patience=120

# Runs a command, and runs it again while another process holds a lock that it requires; reports that process. apt's own
# DPkg::Lock::Timeout reports nothing, and does not cover the lock of its lists.
patiently() {
    waited=0 reported=
    while :; do
        before=$(stat -c %s -- "$log")
        # Without the descriptors of the payload and of the progress lines.
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
        [ "$holder" = "$reported" ] || say wait "$task" "$(printf %s "$holder" | base64 -w0)" >&4
        reported=$holder waited=$((waited + 1))
        sleep 1
        # Ends this process where nobody reads it any more: the next run may be at work by then.
        echo >&4
    done
}

apt_get() {
    patiently apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
        -o Dpkg::Options::=--force-unsafe-io -o DPkg::Lock::Timeout=0 -o Dpkg::Use-Pty=false \
        -o Acquire::Languages=none -o APT::Update::Error-Mode=any "$@"
}

# apt keeps its index where that of the server has an earlier date, and reports success: so has a bundle that was built
# before, or with SOURCE_DATE_EPOCH. Without an index it goes by the dates of the lists of packages, keeps those, and fails
# by their digest. So all that the server had goes: files whose names begin with its name and port.
sources=/etc/apt/sources.list.d/metalform.sources lists=/var/lib/apt/lists
forget_index() {
    server=$(sed -n 's|^URIs: [a-z]*://\([^/@]*@\)*\([^/ ]*\).*|\2|p' "$sources" 2>/dev/null)
    [ -z "$server" ] || rm -f -- "$lists/$server"_*
}
refresh_index() { forget_index && apt_get update; }

# Packages must not start services that are not configured yet: the states start them. The policy (invoke-rc.d(8))
# applies only while this process lives, so that a killed run has no effect later; an existing policy is kept.
policy=/usr/sbin/policy-rc.d
is_ours() { case $(cat "$policy" 2>/dev/null) in *"written by metalform"*) ;; *) return 1 ;; esac; }
forbid_starts() {
    if [ -e "$policy" ] && ! is_ours; then return 0; fi
    printf '#!/bin/sh\n# written by metalform\nkill -0 %s 2>/dev/null && exit 101\nexit 0\n' "$$" >"$policy" &&
        chmod 0755 "$policy"
}
allow_starts() { if is_ours; then rm -f "$policy"; fi; }

# Scripts of packages reload the unit files, most of them twice, which takes a tenth of a second or more each time. The
# systemctl that they find first leaves a reload to the next command that may depend on it, or to the end of the
# transaction. It is in a directory whose programs can be run: /run is none on many hosts. Without room for it, each script
# reloads.
deferral=/var/lib/metalform/deferral due=
# sd_booted(3)
is_booted() { [ -d /run/systemd/system ]; }
defer_reloads() {
    is_booted && systemctl=$(command -v systemctl) || return
    mkdir -p -- "$deferral" && cat >"$deferral/systemctl" <<END && chmod 0755 -- "$deferral/systemctl" && return
#!/bin/sh
# written by metalform
case " \$* " in
' daemon-reload ' | ' --system daemon-reload ') touch $deferral/due && exit ;;
*'start '* | *'reload '* | *' isolate '* | *' --now '*) ! rm $deferral/due 2>/dev/null || $systemctl daemon-reload ;;
esac
exec $systemctl "\$@"
END
    rm -rf -- "$deferral"
}
reload_deferred() {
    if [ -n "$due" ] || [ -e "$deferral/due" ]; then systemctl daemon-reload || return; fi
    rm -rf -- "$deferral"
}

# apt-get arguments; completes the work of a dpkg that was killed before
transaction() {
    defer_reloads
    attempt "$@"
    status=$?
    reload_deferred && return "$status"
}
attempt() {
    set -- -o "DPkg::Path=$deferral:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
    apt_get "$@" && return
    status=$?
    [ -n "$(ls -A /var/lib/dpkg/updates)" ] || return "$status"
    # The scripts of packages that are installed again below may be empty.
    patiently dpkg --force-confdef --force-confold --configure -a || [ -s "$unsynced" ] || return
    apt_get "$@"
}

# The packages that a transaction unpacks, as apt names their archives to a command of its own, until all is synced: dpkg
# syncs its database, and after a power failure has some as installed whose files are empty. What is here before a
# transaction is installed again by it, and is not configured for an observation. A run that is killed leaves them as well.
unsynced=/var/lib/metalform/transaction
note="mkdir -p ${unsynced%/*} && sed 's|.*/||; s|_.*||' >>$unsynced && sync $unsynced ${unsynced%/*}"
# name[=version]...; prints those of the last transaction that dpkg has, without the given ones
left() {
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' -- $(cat "$unsynced") 2>/dev/null |
        while read -r state package; do
            case " $* " in *" $package "* | *" $package="* | *" $package:"*) continue ;; esac
            case $state in not-installed | config-files) ;; *) echo "$package" ;; esac
        done
}

# name[=version]...
install_packages() {
    forbid_starts || return
    again= reinstall=
    if [ -s "$unsynced" ]; then again=$(left "$@") reinstall=--reinstall; fi
    transaction -o "DPkg::Pre-Install-Pkgs::=$note" $reinstall --no-install-recommends \
        --allow-change-held-packages --allow-downgrades install -- "$@" $again
    status=$?
    allow_starts
    # A transaction that failed has not installed all of the one before it again.
    [ "$status" = 0 ] || [ -z "$reinstall" ] || return "$status"
    sync -f /usr /var/lib/dpkg && rm -f -- "$unsynced" || return
    return "$status"
}

# Their unit files are reloaded at the end, and those that were removed before them.
remove_packages() {
    if is_booted; then due=yes; fi
    transaction --allow-change-held-packages purge -- "$@"
}

# hold or install, names...
select_packages() {
    selection=$1
    shift
    printf "%s $selection\n" "$@" | dpkg --set-selections
}
hold_packages() { patiently select_packages hold "$@"; }
release_packages() { patiently select_packages install "$@"; }
