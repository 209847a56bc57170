# After stop_pods.sh: nothing writes to the data any more. A power cut between the two leaves a pod that does not start,
# and no data that looks like that of a member which is only stopped. A copy that a recovery has made and not used would
# be taken for the data once that is gone.
if test -d /var/lib/etcd/member; then
    mv -T /var/lib/etcd/member "/var/lib/etcd/removed-$(date +%s)"
    sync /var/lib/etcd
    rm -rf /var/lib/etcd/recovery
fi
rm -f /etc/kubernetes/manifests/etcd.yaml
