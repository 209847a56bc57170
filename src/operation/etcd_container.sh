# For scripts that let etcd or etcdutl(1) of $image work on the data in $work for a moment, in a container that has no network
# but its loopback. They work on etcd's data in turn: all such containers are of this script or of one that was killed.

containers=metalform-etcd
id=$containers-$(date +%s)-$$

in_container() { # COMMAND...
    ctr -n k8s.io run --rm --mount "type=bind,src=$work,dst=/var/lib/etcd,options=rbind:rw" "$image" "$id" "$@" \
        >"$work/log" 2>&1 </dev/null 9>&-
}
fail() {
    tail -n 3 "$work/log" >&2
    exit 1
}
healthy() {
    ctr -n k8s.io tasks exec --exec-id health "$id" \
        etcdctl --endpoints=http://127.0.0.1:2379 endpoint health
} >/dev/null 2>&1 </dev/null
run_etcd() { # FLAG...: until it has answered; then it has ended
    in_container etcd --data-dir=/var/lib/etcd --listen-peer-urls=http://127.0.0.1:2380 \
        --listen-client-urls=http://127.0.0.1:2379 "$@" &
    etcd=$!
    tries=600
    until healthy; do
        tries=$((tries - 1))
        if test "$tries" = 0 || ! kill -0 "$etcd" 2>/dev/null; then
            fail
        fi
        sleep 0.1
    done
    ctr -n k8s.io tasks kill --signal TERM "$id"
    wait "$etcd" || true
}

end_processes() { # NAME: those of such a container
    for process in /proc/[0-9]*; do
        read -r program <"$process/comm" && test "$program" = "$1" || continue
        case $(tr '\0' ' ' <"$process/cmdline") in
        *" $containers"*) kill -KILL "${process#/proc/}" || true ;;
        esac
    done
}
# Also those of a run that was killed. Where ctr(1) was killed while containerd created a task, only the supervisor of that
# is left: containerd neither lists nor deletes the task, and refuses another one of the same name.
end_containers() {
    end_processes ctr
    for container in $(ctr -n k8s.io containers list --quiet | grep "^$containers"); do
        ctr -n k8s.io tasks delete --force "$container" || true
        ctr -n k8s.io containers delete "$container" || true
    done
    end_processes containerd-shim
} >/dev/null 2>&1
