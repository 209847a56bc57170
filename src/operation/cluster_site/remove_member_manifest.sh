# After stop_pods.sh: data that is not here now does not come any more.
if test -d /var/lib/etcd/member/wal; then
    echo '/var/lib/etcd/member/wal exists: the member has its data' >&2
    exit 1
fi
rm -f /etc/kubernetes/manifests/etcd.yaml
