# Creates the data of a new etcd cluster, the whole of it or nothing. Arguments: name and URLs of its member, image.
# etcd runs for a moment beside the data directory. After etcd_container.sh.
set -eu
name=$1 peer_url=$2 client_url=$3 image=$4
data=/var/lib/etcd/member
work=/var/lib/etcd/begin

test ! -d "$data/wal" || exit 0

discard() {
    end_containers
    rm -rf "$work"
}

# Of a run that was killed here.
discard
trap discard EXIT
mkdir -m 0700 "$work"
run_etcd --name="$name" --initial-cluster-state=new --initial-cluster="$name=$peer_url" \
    --initial-advertise-peer-urls="$peer_url" --advertise-client-urls="$client_url"
# An empty directory may be there already.
mv -T "$work/member" "$data"
sync /var/lib/etcd
