# Prints the image of the static pod of etcd that is here, the images that containerd has, where it answers, when the
# member last wrote to its log, and whether it votes and has a leader. Data that a recovery has made and not put in its
# place yet counts, and so does a static pod that one has kept: the next one puts them there.
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
# By the member itself, over loopback: no certificate and no firewall is in the way, and a slow disk does not delay it.
timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/2381 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' 2>/dev/null |
    awk '$1 == "etcd_server_has_leader" { leader = $2 } $1 == "etcd_server_is_learner" { learner = $2 }
        END { if (leader == 1 && learner == 0) print "has-leader yes" }'
for wal in /var/lib/etcd/member/wal /var/lib/etcd/recovery/member/wal; do
    if test -d "$wal"; then
        stat -c '%Y' "$wal"/*.wal | sort -n | sed -n '$s/^/last-write /p'
        break
    fi
done
