# Prints the image of the static pod of etcd that is here, the images that containerd has, where it answers, and when the
# member last wrote to its log. Data that a recovery has made and not put in its place yet counts, and so does a static pod
# that one has kept: the next one puts them there.
set -eu
for pod in /etc/kubernetes/manifests/etcd.yaml /var/lib/etcd/stopped/etcd.yaml; do
    if test -e "$pod"; then
        echo "pod $(sed -n 's/^[ -]*image: *//p' "$pod" | head -n 1)"
        if stored=$(timeout 20 ctr --connect-timeout 5s -n k8s.io images list --quiet 2>/dev/null); then
            echo "$stored" | sed 's/^/stored /'
        fi
        break
    fi
done
for wal in /var/lib/etcd/member/wal /var/lib/etcd/recovery/member/wal; do
    if test -d "$wal"; then
        stat -c '%Y' "$wal"/*.wal | sort -n | sed -n '$s/^/last-write /p'
        break
    fi
done
