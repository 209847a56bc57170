# Once the packages and files of the states are gone: ends what still runs, removes what was written by programs, and puts
# back what was recorded. $directories, $files, $networks, $sysctls, $units, $users: names, separated by spaces.
before=/var/lib/metalform/before
recorded() {
    test -f "$before/inventory" &&
        awk -F '\t' -v section="$1" -v name="$2" \
            '$1 == section && $2 == name { print $3; found = 1 } END { exit !found }' "$before/inventory"
}

# Supervisors of containers outlive containerd.
for process in /proc/[0-9]*; do
    case $(cat "$process/comm" 2>/dev/null) in
    containerd-shim*) kill -KILL "${process#/proc/}" ;;
    esac
done
mounted() {
    awk '$2 ~ "^/(run/containerd|run/netns|var/lib/kubelet|var/lib/containerd)/" { print $2 }' /proc/mounts | sort -r
}
for place in $(mounted); do
    umount "$place" || umount --lazy "$place"
done
rm -rf /run/netns/cni-* /run/containerd /run/haproxy /run/bird

for network in $networks; do
    ip route flush root "$network"
done

if command -v dpkg-query >/dev/null && test -f "$before/inventory"; then
    # What came with the packages of the states; dpkg leaves alone what another package needs.
    if test -f "$before/brought"; then
        brought=$(cat "$before/brought")
    else
        brought=$(dpkg-query -W -f '${Package}\n')
    fi
    new=
    for package in $brought; do
        recorded package "$package" >/dev/null || new="$new $package"
    done
    test -z "$new" || DEBIAN_FRONTEND=noninteractive dpkg --purge $new 2>&1 || true
fi

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
