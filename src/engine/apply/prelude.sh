# Functions of every apply program. POSIX sh and GNU coreutils only. `nonce` is set before, file descriptor 3 is the
# payload, and `log` contains the output of the current task.

export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
unset POSIXLY_CORRECT
umask 022

# Preferably where only root writes: a full /tmp must not cause failures.
log=$(mktemp -p /run metalform.XXXXXXXXXX 2>/dev/null) || log=$(mktemp) || exit 1
files() { :; }
trap 'files drop; rm -rf -- "$log" "$log.units"' EXIT
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

# start of the names of temporary files; removes those that a killed run has left. Those of this process are kept: the
# names of staged files (`a.b`) can begin like those of another file (`a`). Only the next one to be made goes.
sweep() {
    for old in "$1"*; do
        case ".${old#"$1"}." in .$$.) ;; *".$$."*) continue ;; esac
        if [ -f "$old" ] || [ -L "$old" ]; then rm -f -- "$old"; fi
    done
}

# bytes, directory, start of the temporary name, path, owner:group, mode
put() {
    [ -d "$2" ] || mkdir -p -- "$2" || return
    sweep "$3"
    {
        # -C: an existing file or link is not followed.
        (umask 077 && set -C && head -c "$1" <&3 >"$3$$") &&
            arrived "$1" "$3$$" &&
            chown -- "$5" "$3$$" && chmod -- "$6" "$3$$" &&
            sync -- "$3$$" && mv -fT -- "$3$$" "$4"
    } || {
        set -- "$?" "$3$$"
        rm -f -- "$2"
        return "$1"
    }
}

# bytes, file; a broken connection looks like the end of a shorter payload
arrived() {
    size=$(stat -c %s -- "$2") || return
    [ "$size" = "$1" ] || { echo "only $size of $1 bytes arrived"; return 1; }
}

# directory, start of the temporary name, path, target
link() {
    [ -d "$1" ] || mkdir -p -- "$1" || return
    sweep "$2"
    { ln -s -- "$4" "$2$$" && mv -fT -- "$2$$" "$3"; } || {
        set -- "$?" "$2$$"
        rm -f -- "$2"
        return "$1"
    }
}

# directory, start of the temporary name, key, owner:group, subject; prints the request
request() {
    if [ ! -s "$3" ]; then
        [ -d "$1" ] || mkdir -p -- "$1" || return
        sweep "$2"
        (umask 077 && openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$2$$") &&
            chown -- "$4" "$2$$" && sync -- "$2$$" && mv -fT -- "$2$$" "$3" || return
    fi
    chown -- "$4" "$3" && chmod 0600 -- "$3" && openssl req -new -sha256 -key "$3" -subj "$5"
}

# verb, unit; after a failure prints the unit's last log lines, which systemctl does not
unit() {
    systemctl "$1" -- "$2" && return
    set -- "$?" "$2"
    journalctl --no-pager -q -o cat -n 15 -u "$2"
    return "$1"
}
