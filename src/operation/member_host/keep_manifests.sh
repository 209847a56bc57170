# After stop_pods.sh, before the static pods are removed: keeps those with which this member can continue, should the one
# that continues now be lost too. A recovery does not fail where there is no space for them.
manifests=/etc/kubernetes/manifests
kept=/var/lib/etcd/stopped
keep() {
    rm -rf "$kept" && mkdir -p -m 0700 "$kept" || return 1
    for pod in kube-apiserver etcd; do
        ! test -e "$manifests/$pod.yaml" || cp -p "$manifests/$pod.yaml" "$kept" || return 1
    done
    sync -f "$kept"
}
# Without etcd's, a run before this one has kept them.
if test -e "$manifests/etcd.yaml"; then
    keep || rm -rf "$kept"
fi
