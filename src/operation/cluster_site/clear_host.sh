# After recorded.sh, once all that the states have is gone: removes what was written by programs, and puts back what was
# recorded. $directories, $files, $sysctls, $units, $users: names, separated by spaces.
for directory in $directories; do
    test -d "$directory" && test ! -L "$directory" || continue
    find "$directory" -mindepth 1 -maxdepth 1 | while read -r child; do
        recorded path "$child" >/dev/null || rm -rf --one-file-system -- "$child"
    done
    if access=$(recorded path "$directory"); then
        set -- $access
        chmod "$2" "$directory"
        chown "$3" "$directory"
    elif ! mountpoint -q "$directory"; then
        rmdir --ignore-fail-on-non-empty "$directory"
    fi
done
for file in $files; do
    if recorded path "$file" >/dev/null && test ! -e "$file" && test ! -L "$file"; then
        tar -C / -xpf "$before/etc.tar" "${file#/}"
    fi
done
for key in $sysctls; do
    if value=$(recorded sysctl "$key"); then
        test "$(sysctl -n "$key" 2>/dev/null)" = "$value" || sysctl -qw "$key=$value"
    fi
done
if test -f "$before/inventory"; then
    for user in $users; do
        recorded user "$user" >/dev/null || ! getent passwd "$user" >/dev/null || userdel "$user"
        recorded group "$user" >/dev/null || ! getent group "$user" >/dev/null || groupdel "$user"
    done
fi
systemctl daemon-reload
systemctl reset-failed $units 2>/dev/null || true
exit 0
