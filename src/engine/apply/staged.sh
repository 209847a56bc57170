# Files of consecutive resources are made side by side, before the first of them is moved into place. `files COMMAND`
# calls the command for each of them until one fails, with: number, bytes, directory, start of the temporary name,
# owner:group, mode. f0, f1 and so on are their temporary names; the first `ready` of them are complete, on disk, and
# have their owner and mode; `why` is the reason why the next one is not. Files for a directory that another user can
# change are made where only root can, and written again from there (holder.sh).

# `stage` fails for a directory that this cannot make
tidy() {
    safe "$3" || return 0
    [ -d "$3" ] || mkdir -p -- "$3"
    sweep "$4"
    return 0
}

stage() {
    staged=$4$$.$1
    if ! safe "$3"; then
        [ -d "$log.files" ] || mkdir -m 0700 -- "$log.files" || return
        staged=$log.files/$1
    fi
    eval "f$1=\$staged"
    # of a killed run with the same process id
    if [ -f "$staged" ] || [ -L "$staged" ]; then rm -f -- "$staged"; fi
    head -c "$2" <&3 >"$staged" || return
    made=$(($1 + 1))
}

# one by one, when they could not all be settled at once
settle() {
    [ "$1" -lt "$made" ] || return
    eval "set -- \"\$1\" \"\$2\" \"\$f$1\" \"\$5\" \"\$6\""
    arrived "$2" "$3" && chown -h -- "$4" "$3" && chmod -- "$5" "$3" && sync -- "$3" && ready=$(($1 + 1))
}

drop() {
    eval "set -- \"\$f$1\""
    [ -z "$1" ] || rm -f -- "$1"
}

# number, path, its directory, shell text that writes the file from the payload
place() {
    [ "$1" -lt "$ready" ] || { printf '%s\n' "$why"; return 1; }
    eval "staged=\$f$1"
    case $staged in
        "$log.files/"*) within "$3" "$4" 3<"$staged" ;;
        *) mv -fT -- "$staged" "$2" && label "$2" ;;
    esac
}
