# Removes the record of what was there before. What is mounted there stays, and so does the largest token of the jobs on a
# host of the pool (engine/fence.sh): without it, a program of an earlier job would change the host again.
cd /
test -d /var/lib/metalform || exit 0
# Whether something is mounted there or below: an administrator's disk, or a share that other hosts use too.
has_mount() { awk -v place="$1" 'index($2 "/", place "/") == 1 { found = 1 } END { exit !found }' /proc/mounts; }
# By the record, and without one by the mark of stop_kubelet.sh, a reset that was interrupted resumes: they are the last.
# The mark does not outlive the record, without which more would be removed; and a part of that is no record.
find /var/lib/metalform -mindepth 1 -maxdepth 1 ! -name fence ! -name before ! -name resetting |
    while read -r place; do
        mountpoint -q "$place" || rm -rf --one-file-system "$place" || has_mount "$place" || exit 1
    done || exit 1
rm -f /var/lib/metalform/resetting || exit 1
if test -e /var/lib/metalform/before; then
    # Of files of the host; a part of the record that is left is looked at by nothing.
    rm -f /var/lib/metalform/before/etc.tar || exit 1
    mv -T /var/lib/metalform/before /var/lib/metalform/before.gone && rm -rf /var/lib/metalform/before.gone || exit 1
fi
# Of a host of the pool the lock stays, which programs of its jobs wait for.
test -e /var/lib/metalform/fence || rm -rf /run/metalform || exit 1
test -e /var/lib/metalform/fence || rmdir /var/lib/metalform 2>/dev/null || has_mount /var/lib/metalform
