# After stop_pods.sh: nothing writes to the data any more. A power cut between the two leaves a pod that does not start,
# and no data that looks like that of a member which is only stopped.
if test -d /var/lib/etcd/member; then
    mv -T /var/lib/etcd/member "/var/lib/etcd/removed-$(date +%s)"
    sync /var/lib/etcd
fi
rm -f /etc/kubernetes/manifests/etcd.yaml
