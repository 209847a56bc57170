# Functions for mounts.

# mount point; when it is busy, lists the processes that use it, which umount does not
unmount() {
    umount -- "$1" 3<&- && return
    set -- "$?" "$1"
    stat -c %N -- /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd/* 2>/dev/null |
        grep -F -e " -> '$2'" -e " -> '$2/" | cut -d / -f 3 | sort -un | head -n 10 |
        while read -r pid; do printf 'it is held by process %s (%s)\n' "$pid" "$(cat "/proc/$pid/comm")"; done
    return "$1"
}
