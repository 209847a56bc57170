# After pod_processes.sh. Fails where a process of a pod does not end.
end_pods() {
    tries=100
    while left=$(processes_of_pods) && test -n "$left"; do
        if test "$tries" = 0; then
            echo 'processes of pods do not end:' $left >&2
            return 1
        fi
        if test -e "$cgroups/kubepods.slice/cgroup.kill"; then
            echo 1 >"$cgroups/kubepods.slice/cgroup.kill"
        else
            kill -KILL $left 2>/dev/null || true
        fi
        tries=$((tries - 1))
        sleep 0.1
    done
}
