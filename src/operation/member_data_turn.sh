# Scripts that work on the data of etcd follow each other on a host: one of a run that was killed ends first. The lock is
# released when this shell ends; what may outlive it must not inherit descriptor 9.
mkdir -p /run/metalform
exec 9>/run/metalform/etcd-data.lock
if ! flock -w 100 9; then
    echo 'a run of metalform that was killed still works on the data of etcd' >&2
    exit 1
fi
