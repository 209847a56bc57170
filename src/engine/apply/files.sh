# Functions that change files. `within` runs them, as root or as another user; file descriptor 3 is the payload.

# process id; whether it is a shell like this one
is_shell() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
    [ -r "/proc/$1/comm" ] && read -r other <"/proc/$1/comm" && read -r own <"/proc/$$/comm" && [ "$other" = "$own" ]
}

# start of the names of temporary files; removes those that a killed run has left. Those of this process are kept: the
# names of staged files (`a.b`) can begin like those of another file (`a`). Only the next one to be made goes. Those of
# a run beside this one are kept as well: a master updates the proxies of other nodes.
sweep() {
    for old in "$1"*; do
        case ".${old#"$1"}." in .$$.) ;; *".$$."*) continue ;; *) ! is_shell "${old##*.}" || continue ;; esac
        if [ -f "$old" ] || [ -L "$old" ]; then rm -f -- "$old"; fi
    done
}

# paths, after -R with what is below; where SELinux is enabled, each gets the context that the policy has for it. What is new has that of its directory.
label() {
    if [ -e /sys/fs/selinux/enforce ] && [ "$(id -u)" = 0 ]; then restorecon "$@"; fi
}

# bytes, directory, start of the temporary name, path, owner:group, mode
put() {
    [ -d "$2" ] || mkdir -p -- "$2" || return
    sweep "$3"
    {
        # -C: an existing file or link is not followed.
        (umask 077 && set -C && head -c "$1" <&3 >"$3$$") &&
            arrived "$1" "$3$$" &&
            chown -h -- "$5" "$3$$" && chmod -- "$6" "$3$$" &&
            sync -- "$3$$" && mv -fT -- "$3$$" "$4" && label "$4"
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
    { ln -s -- "$4" "$2$$" && mv -fT -- "$2$$" "$3" && label "$3"; } || {
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
            chown -h -- "$4" "$2$$" && sync -- "$2$$" && mv -fT -- "$2$$" "$3" && label "$3" || return
    fi
    chown -h -- "$4" "$3" && chmod 0600 -- "$3" && openssl req -new -sha256 -key "$3" -subj "$5"
}

# path, owner:group, mode
set_access() { chown -h -- "$2" "$1" && chmod -- "$3" "$1"; }

# path, owner:group, mode
make_directory() { mkdir -p -m "$3" -- "$1" && set_access "$@" && label "$1"; }
