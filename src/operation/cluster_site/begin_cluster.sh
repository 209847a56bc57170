# Creates the data of a new etcd cluster, the whole of it or nothing. Arguments: name and URLs of its member, image.
# etcd runs for a moment in a container that has no network but its loopback, beside the data directory.
set -eu
name=$1 peer_url=$2 client_url=$3 image=$4
data=/var/lib/etcd/member
begun=/var/lib/etcd/begin
id=metalform-etcd-begin

test ! -d "$data/wal" || exit 0

discard() {
    ctr -n k8s.io tasks delete --force "$id" || true
    ctr -n k8s.io containers delete "$id" || true
    rm -rf "$begun"
} >/dev/null 2>&1
healthy() {
    ctr -n k8s.io tasks exec --exec-id health "$id" \
        etcdctl --endpoints=http://127.0.0.1:2379 endpoint health
} >/dev/null 2>&1 </dev/null

# Of a run that was killed here.
discard
trap discard EXIT
mkdir -m 0700 "$begun"
ctr -n k8s.io run --rm --mount "type=bind,src=$begun,dst=/var/lib/etcd,options=rbind:rw" "$image" "$id" \
    etcd --name="$name" --data-dir=/var/lib/etcd \
    --initial-cluster-state=new --initial-cluster="$name=$peer_url" --initial-advertise-peer-urls="$peer_url" \
    --listen-peer-urls=http://127.0.0.1:2380 \
    --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls="$client_url" \
    >"$begun/log" 2>&1 </dev/null 9>&- &
etcd=$!
tries=600
until healthy; do
    tries=$((tries - 1))
    if [ "$tries" = 0 ] || ! kill -0 "$etcd" 2>/dev/null; then
        tail -n 3 "$begun/log" >&2
        exit 1
    fi
    sleep 0.1
done
ctr -n k8s.io tasks kill --signal TERM "$id"
wait "$etcd" || true
# An empty directory may be there already.
mv -T "$begun/member" "$data"
sync /var/lib/etcd
