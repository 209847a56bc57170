# After pod_processes.sh and end_pods.sh, once the packages of the states are gone: ends containers, and removes their
# mounts and routes. $networks: names, separated by spaces.
end_pods || exit 1
# Supervisors of containers outlive containerd.
for process in /proc/[0-9]*; do
    case $(cat "$process/comm" 2>/dev/null) in
    containerd-shim*) kill -KILL "${process#/proc/}" ;;
    esac
done
# Network namespaces of others are mounted beside those of pods.
mounted() {
    awk '$2 ~ "^/(run/containerd/|run/netns/cni-|var/lib/kubelet/|var/lib/containerd/)" { print $2 }' /proc/mounts | sort -r
}
for place in $(mounted); do
    umount "$place" || umount --lazy "$place"
done
rm -rf /run/netns/cni-* /run/containerd /run/haproxy /run/bird
# With a namespace of someone else it stays. ip-netns(8) mounts it on itself.
if test -d /run/netns && test -z "$(ls -A /run/netns)"; then
    ! mountpoint -q /run/netns || umount /run/netns
    rmdir /run/netns || true
fi

for network in $networks; do
    ip route flush root "$network"
done
