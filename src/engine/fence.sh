# Before each program of a job: this host keeps the largest token that it was given, and refuses programs with a smaller
# one. $fence_token: digits. A program holds the lock while it runs, so that a larger token is accepted only once the
# programs under smaller ones have ended.
fence_file=/var/lib/metalform/fence
fence_lock=/run/metalform/fence.lock
fence_refuse() {
    echo "metalform-fence $*" >&2
    exit 86
}
# What is waited for is another program's end.
fence_take() {
    flock "$1" -w 30 8 || fence_refuse busy
}
fence_read() {
    fence_largest=0
    test ! -e "$fence_file" || read -r fence_largest <"$fence_file" || fence_largest=
    case $fence_largest in
    '' | *[!0-9]*) fence_refuse unreadable ;;
    esac
    test "$fence_token" -ge "$fence_largest" || fence_refuse superseded "$fence_largest"
}
mkdir -p "${fence_lock%/*}" || fence_refuse unwritable
exec 8>>"$fence_lock"
while fence_take -s && fence_read && test "$fence_token" -gt "$fence_largest"; do
    fence_take -x && fence_read
    if test "$fence_token" -gt "$fence_largest"; then
        mkdir -p "${fence_file%/*}" && (umask 077 && echo "$fence_token" >"$fence_file.new") &&
            sync "$fence_file.new" && mv -f "$fence_file.new" "$fence_file" && sync "${fence_file%/*}" ||
            fence_refuse unwritable
    fi
done
