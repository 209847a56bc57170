# Makes the only member of a cluster, of its own data or of a snapshot on standard input: the whole of it or nothing.
# Arguments: image of etcd, name and peer URL of the member, "data" or "snapshot", bytes of the snapshot.
# After stop_pods.sh: nothing writes to the data any more, and no API server remembers other data. The kubelet starts both
# when this script has ended.
set -eu
image=$1 name=$2 peer_url=$3 source=$4 size=$5
data=/var/lib/etcd/member
work=/var/lib/etcd/recovery
containers=metalform-etcd-recovery
id=$containers-$(date +%s)-$$

end_processes() { # NAME: those that are of one of the containers
    for process in /proc/[0-9]*; do
        read -r program <"$process/comm" && test "$program" = "$1" || continue
        case $(tr '\0' ' ' <"$process/cmdline") in
        *" $containers"*) kill -KILL "${process#/proc/}" || true ;;
        esac
    done
}
# Also those of a run that was killed. Where ctr(1) was killed while containerd created a task, only the supervisor of that
# is left: containerd neither lists nor deletes the task, and refuses another one of the same name.
end_containers() {
    end_processes ctr
    for container in $(ctr -n k8s.io containers list --quiet | grep "^$containers"); do
        ctr -n k8s.io tasks delete --force "$container" || true
        ctr -n k8s.io containers delete "$container" || true
    done
    end_processes containerd-shim
} >/dev/null 2>&1
leave() {
    end_containers
    test -e "$work/whole" || rm -rf "$work"
    systemctl start kubelet.service
}
in_container() { # COMMAND...: without a network but its loopback
    ctr -n k8s.io run --rm --mount "type=bind,src=$work,dst=/var/lib/etcd,options=rbind:rw" "$image" "$id" "$@" \
        >"$work/log" 2>&1 </dev/null 9>&-
}
healthy() {
    ctr -n k8s.io tasks exec --exec-id health "$id" \
        etcdctl --endpoints=http://127.0.0.1:2379 endpoint health
} >/dev/null 2>&1 </dev/null
fail() {
    tail -n 3 "$work/log" >&2
    exit 1
}

of_data() {
    cp -a --reflink=auto "$data" "$work/member"
    in_container etcd --force-new-cluster --name="$name" --data-dir=/var/lib/etcd \
        --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls="$peer_url" \
        --initial-cluster="$name=$peer_url" \
        --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 &
    etcd=$!
    tries=600
    until healthy; do
        tries=$((tries - 1))
        if test "$tries" = 0 || ! kill -0 "$etcd" 2>/dev/null; then
            fail
        fi
        sleep 0.1
    done
    ctr -n k8s.io tasks kill --signal TERM "$id"
    wait "$etcd" || true
}

# Revisions go far ahead, and the old ones are compacted: who watches what came after the snapshot reads all again.
of_snapshot() {
    cat >"$work/snapshot.db"
    test "$(stat -c %s "$work/snapshot.db")" = "$size" || {
        echo 'the snapshot has not arrived as a whole' >&2
        exit 1
    }
    in_container etcdutl snapshot restore /var/lib/etcd/snapshot.db --data-dir=/var/lib/etcd/restored \
        --name="$name" --initial-cluster="$name=$peer_url" --initial-advertise-peer-urls="$peer_url" \
        --initial-cluster-token="recovery-$(date +%s)" --bump-revision=1000000000 --mark-compacted || fail
    mv -T "$work/restored/member" "$work/member"
}

trap leave EXIT
end_containers
# Of a run that ended between the two moves below; a snapshot is always the one that was asked for.
if test "$source" = snapshot || test -e "$data" || ! test -e "$work/whole"; then
    rm -rf "$work"
    mkdir -m 0700 "$work"
    "of_$source"
    sync "$work"
    : >"$work/whole"
fi
if test -e "$data"; then
    mv -T "$data" "/var/lib/etcd/removed-$(date +%s)"
fi
mv -T "$work/member" "$data"
sync /var/lib/etcd
rm -rf "$work"
