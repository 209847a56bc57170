# Files of consecutive resources are made side by side, before the first of them is moved into place. `files COMMAND`
# calls the command for each of them until one fails, with: number, bytes, directory, start of the temporary name,
# owner:group, mode. f0, f1 and so on are their temporary names; the first `ready` of them are complete, on disk, and
# have their owner and mode; `why` is the reason why the next one is not.

# `stage` fails for a directory that this cannot make
tidy() {
    [ -d "$3" ] || mkdir -p -- "$3"
    sweep "$4"
    return 0
}

stage() {
    eval "f$1=\$4\$\$.\$1"
    # of a killed run with the same process id
    if [ -f "$4$$.$1" ] || [ -L "$4$$.$1" ]; then rm -f -- "$4$$.$1"; fi
    head -c "$2" <&3 >"$4$$.$1" || return
    made=$(($1 + 1))
}

# one by one, when they could not all be settled at once
settle() {
    [ "$1" -lt "$made" ] || return
    eval "set -- \"\$1\" \"\$2\" \"\$f$1\" \"\$5\" \"\$6\""
    arrived "$2" "$3" && chown -- "$4" "$3" && chmod -- "$5" "$3" && sync -- "$3" && ready=$(($1 + 1))
}

drop() {
    eval "set -- \"\$f$1\""
    [ -z "$1" ] || rm -f -- "$1"
}

# number, path
place() {
    [ "$1" -lt "$ready" ] || { printf '%s\n' "$why"; return 1; }
    eval "mv -fT -- \"\$f$1\" \"\$2\""
}
