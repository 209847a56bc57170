# Fails where the host has no API server.
if ! test -e /etc/kubernetes/manifests/kube-apiserver.yaml; then
    echo 'there is no static pod of kube-apiserver' >&2
    exit 1
fi
