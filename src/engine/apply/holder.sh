# The owner of a directory can replace what is in it at any instant, by a link for example, whoever that belongs to. Root
# must not follow such a link: what is below a directory of another user is changed with the rights of that user.

# The effective user id of this shell (proc_pid_status(5)); empty where it is not known, which is taken for root.
euid=
while read -r key _ euid _; do
    [ "$key" != Uid: ] || break
    euid=
done </proc/self/status

# directory; fails where it, or one on the way to it, belongs to another user than root, and sets `holder` to the first
# that does and `owner` to the number of the user. Directories that do not exist yet are made by root.
safe() {
    [ "${euid:-0}" = 0 ] || return 0
    rest=${1#/}/ holder= links=0
    while [ -n "$rest" ]; do
        above=$holder holder=$holder/${rest%%/*} rest=${rest#*/}
        if [ -L "$holder" ]; then
            owner=$(stat -c %u -- "$holder")
            [ "$owner" = 0 ] || return
            # A link of root: the path continues at its target. As many as the kernel follows (path_resolution(7)).
            links=$((links + 1)) target=$(readlink -- "$holder")
            [ "$links" -le 40 ] || { owner=; return 1; }
            case $target in
                /*) holder= rest=${target#/}/$rest ;;
                *) holder=$above rest=$target/$rest ;;
            esac
        elif [ ! -e "$holder" ]; then
            return 0
        elif [ ! -O "$holder" ]; then
            owner=$(stat -c %u -- "$holder")
            return 1
        fi
    done
}

# directory, shell text; runs the text, which changes something in the directory
within() {
    if safe "$1"; then
        eval "$2"
        return
    fi
    set -- "$2" "$holder" "$owner"
    entry=$(getent passwd "$3") || { echo "$2 belongs to the user $3, who does not exist"; return 1; }
    gid=${entry#*:*:*:} gid=${gid%%:*}
    printf '%s\n' "$functions" "$1" |
        setpriv --reuid "$3" --regid "$gid" --init-groups -- INTERPRETER 9<&0 </dev/null && return
    set -- "$?" "$2" "${entry%%:*}"
    echo "$2 belongs to $3: what is below it is changed with the rights of $3 alone"
    return "$1"
}
