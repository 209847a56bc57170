# Begins a copy of $size bytes. $directory: its path; $node: a file that every node has, and no host that has left.
set -e
test -e "$node" || {
    echo 'the host is not a node of this cluster' >&2
    exit 1
}
mkdir -p "${directory%/*}"
umask 077
mkdir -p "$directory"
chmod 0700 "$directory"
cd "$directory"
: >.metalform-copy
# etcd may write to the same file system: half of what is free is left to it.
free=$(df -P -k . | awk 'NR == 2 { print $4 }')
test "$((free / 2))" -ge "$((size / 1024))" || {
    echo "$free KiB are free in $directory, less than twice the $size bytes of the snapshot" >&2
    exit 1
}
