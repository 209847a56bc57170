# A member that leaves, or is replaced, does not continue with what a recovery has kept (keep_manifests.sh).
rm -rf /var/lib/etcd/stopped
