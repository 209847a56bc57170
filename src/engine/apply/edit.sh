# Functions for files that have other writers too. The first one also runs as the owner of authorized keys.

# path, expected digest, empty for no file
unchanged() {
    sum=
    if [ -f "$1" ] && [ ! -L "$1" ]; then
        sum=$(sha256sum <"$1") || return
    elif [ -e "$1" ] || [ -L "$1" ]; then
        sum=another
    fi
    [ "${sum%% *}" = "$2" ] || {
        printf '%s has changed since it was read; run again\n' "$1"
        return 1
    }
}

# bytes, start of the temporary name, path, digest of the existing file
edit() {
    unchanged "$3" "$4" || return
    sweep "$2"
    {
        (umask 077 && set -C && head -c "$1" <&3 >"$2$$") &&
            arrived "$1" "$2$$" &&
            cp --attributes-only --preserve=all --no-preserve=timestamps -- "$3" "$2$$" &&
            sync -- "$2$$" && unchanged "$3" "$4" && replace "$2$$" "$3"
    } || {
        set -- "$?" "$2$$"
        rm -f -- "$2"
        return "$1"
    }
}

# new file, path. A mount point (/etc/hosts in a container) cannot be replaced by a rename: it is written in place, the
# one case in which a killed run can leave half a file.
replace() {
    why=$(mv -fT -- "$1" "$2" 2>&1) && return
    case $why in
        *"resource busy"*) cat <"$1" >"$2" && sync -- "$2" && rm -f -- "$1" ;;
        *) printf '%s\n' "$why"; return 1 ;;
    esac
}
