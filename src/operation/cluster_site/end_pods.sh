# Ends the processes of pods by their cgroups: containers outlive containerd, and without it nothing else knows them.
# The kubelet's cgroups are kubepods.slice with cgroup v2, else kubepods below each controller.
cgroups=/sys/fs/cgroup
pod_cgroups=$cgroups/kubepods.slice
test -e "$cgroups/cgroup.controllers" || pod_cgroups=$(echo "$cgroups"/*/kubepods)

# Without 0, a process that this host does not see: kill(1) takes it for the caller's group.
processes_of_pods() {
    find $pod_cgroups -name cgroup.procs -exec cat {} + 2>/dev/null |
        awk '$1 && !seen[$1]++'
}

# Fails where one does not end.
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
