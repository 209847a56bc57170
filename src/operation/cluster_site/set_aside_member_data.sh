# After stop_pods.sh: nothing writes to the data any more.
rm -f /etc/kubernetes/manifests/etcd.yaml
if test -d /var/lib/etcd/member; then
    mv -T /var/lib/etcd/member "/var/lib/etcd/removed-$(date +%s)"
fi
