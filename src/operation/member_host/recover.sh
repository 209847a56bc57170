# Makes the only member of a cluster, of its own data or of a snapshot on standard input: the whole of it or nothing.
# Arguments: image of etcd, name and peer URL of the member, "data" or "snapshot", bytes of the snapshot.
# After etcd_container.sh and stop_pods.sh: nothing writes to the data any more, and no API server remembers other data. The kubelet starts both
# when this script has ended.
set -eu
image=$1 name=$2 peer_url=$3 source=$4 size=$5
data=/var/lib/etcd/member
work=/var/lib/etcd/recovery
manifests=/etc/kubernetes/manifests
kept=/var/lib/etcd/stopped

leave() {
    end_containers
    test -e "$work/whole" || rm -rf "$work"
    systemctl start kubelet.service
}
of_data() {
    cp -a --reflink=auto "$data" "$work/member"
    run_etcd --force-new-cluster --name="$name" --initial-advertise-peer-urls="$peer_url" \
        --initial-cluster="$name=$peer_url" --advertise-client-urls=http://127.0.0.1:2379
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
    sync -f "$work"
    : >"$work/whole"
fi
if test -e "$data"; then
    mv -T "$data" "/var/lib/etcd/removed-$(date +%s)"
fi
mv -T "$work/member" "$data"
sync /var/lib/etcd
# Another recovery has stopped this member (keep_manifests.sh). etcd's manifest is the last: a run that ends before puts
# back both.
if ! test -e "$manifests/etcd.yaml" && test -e "$kept/etcd.yaml"; then
    for pod in kube-apiserver etcd; do
        if test -e "$kept/$pod.yaml"; then
            cp -p "$kept/$pod.yaml" "$manifests/.$pod.yaml"
            mv -T "$manifests/.$pod.yaml" "$manifests/$pod.yaml"
        fi
    done
    sync -f "$manifests"
fi
rm -rf "$work" "$kept"
