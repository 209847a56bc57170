# Functions for files that others own too. Users run the first one about their own files.

# path, digest of what it was, nothing where nothing was
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

# bytes, start of the temporary name, path, digest of what is there
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

# new file, path. What is a mount of its own (/etc/hosts in a container) cannot be renamed onto: it is written
# in place, the one case in which being killed can leave half a file.
replace() {
    why=$(mv -fT -- "$1" "$2" 2>&1) && return
    case $why in
        *"resource busy"*) cat <"$1" >"$2" && sync -- "$2" && rm -f -- "$1" ;;
        *) printf '%s\n' "$why"; return 1 ;;
    esac
}
