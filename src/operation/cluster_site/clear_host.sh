# After recorded.sh, once all that the states have is gone: removes what was written by programs, and puts back what was
# recorded. $directories, $files, $sysctls, $units, $users: names, separated by spaces.
present=$(for directory in $directories; do ! test -d "$directory" || test -L "$directory" || echo "$directory"; done)
for directory in $present; do
    find "$directory" -mindepth 1 -maxdepth 1 ! -exec mountpoint -q {} \; -print
done | unrecorded path | xargs -r -d '\n' rm -rf --one-file-system --
printf '%s\n' $present | recorded path | while read -r directory _ mode owner _; do
    chmod "$mode" "$directory"
    chown "$owner" "$directory"
done
for directory in $(printf '%s\n' $present | unrecorded path); do
    mountpoint -q "$directory" || rmdir --ignore-fail-on-non-empty "$directory"
done
printf '%s\n' $files | recorded path | while read -r file _; do
    test -e "$file" || test -L "$file" || tar -C / -xpf "$before/etc.tar" "${file#/}"
done
printf '%s\n' $sysctls | recorded sysctl | while IFS='	' read -r key value; do
    test "$(sysctl -n "$key" 2>/dev/null)" = "$value" || sysctl -qw "$key=$value"
done
if test -f "$before/inventory"; then
    for user in $(printf '%s\n' $users | unrecorded user); do
        ! getent passwd "$user" >/dev/null || userdel "$user"
    done
    for group in $(printf '%s\n' $users | unrecorded group); do
        ! getent group "$group" >/dev/null || groupdel "$group"
    done
fi
systemctl daemon-reload
systemctl reset-failed $units 2>/dev/null || true
# With its own configuration again. One that fails is the administrator's to see, as it would be at the next boot.
printf '%s\n' $units | recorded unit | while read -r unit state; do
    test "$state" != enabled || systemctl enable --now "$unit" >&2 || true
done
exit 0
