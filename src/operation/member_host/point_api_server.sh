# After stop_pods.sh: the API server, where there is one, starts again with the etcd at the client URL $etcd alone.
manifest=/etc/kubernetes/manifests/kube-apiserver.yaml
if test -e "$manifest"; then
    sed -i "s|--etcd-servers=.*|--etcd-servers=$etcd|" "$manifest"
fi
