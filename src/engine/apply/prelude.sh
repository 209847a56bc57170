# Functions of every apply program. POSIX sh and GNU coreutils only. `nonce` is set before, file descriptor 3 is the
# payload, and `log` contains the output of the current task.

export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
unset POSIXLY_CORRECT
umask 022

# Preferably where only root writes: a full /tmp must not cause failures.
log=$(mktemp -p /run metalform.XXXXXXXXXX 2>/dev/null) || log=$(mktemp) || exit 1
files() { :; }
trap 'files drop; rm -rf -- "$log" "$log.units" "$log.files"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

say() {
    # After SIGUSR1 the program stops before the next resource, and never within one.
    if [ "$1" = begin ] && [ -n "$stop" ]; then
        printf '%s stopped\n' "$nonce"
        exit 0
    fi
    printf '%s %s\n' "$nonce" "$*"
}

# Identifies this process to `Process`: process id, process group, and start time (proc_pid_stat(5)).
stop=
trap 'stop=1' USR1
read -r stat </proc/self/stat && set -- ${stat##*") "} && say at "${stat%% *}" "$3" "${20}"

# task number, exit status
fail() {
    say fail "$1" "$2" "$(tail -c 4096 -- "$log" | base64 -w0)"
    exit 1
}

# verb, unit; after a failure prints the unit's last log lines, which systemctl does not
unit() {
    systemctl "$1" -- "$2" && return
    set -- "$?" "$2"
    journalctl --no-pager -q -o cat -n 15 -u "$2"
    return "$1"
}
