# After pod_processes.sh: ends the containers of these static pods at once: of $pods, without it of etcd. The kubelet is
# stopped for as long as this script runs. A process that has its files open would go on as the member that it was: the
# kubelet leaves a static pod alone whose manifest goes and comes back as it was; and it ends no pod before it has asked
# the API once.
set -e
case $(systemctl show --property=ActiveState --value kubelet.service) in
inactive | failed) ;;
*)
    trap 'systemctl start kubelet.service' EXIT
    systemctl stop kubelet.service
    ;;
esac
pods=${pods:-etcd}
# A host that was never deployed, or was reset, has neither; containers outlive the package of containerd.
command -v ctr >/dev/null || test -e /run/containerd || pods=
for pod in $pods; do
    tries=100
    while :; do
        left=$(processes_of_static_pod "$pod")
        test -n "$left" || break
        if test "$tries" = 0; then
            echo "$pod does not end: processes" $left >&2
            exit 1
        fi
        kill -KILL $left 2>/dev/null || true
        tries=$((tries - 1))
        sleep 0.1
    done
done
