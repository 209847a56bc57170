# Waits, with the functions of conditions.sh.

# seconds, condition for the message, command that checks it...
await() {
    seconds=$1 wish=$2
    shift 2
    # The clock may be set during the wait; the time since boot only grows.
    read -r up _ </proc/uptime
    end=$((${up%.*} + seconds))
    until "$@" 3<&-; do
        [ "$?" = 1 ] || { echo "$seen"; return 1; }
        read -r up _ </proc/uptime
        [ "${up%.*}" -lt "$end" ] || { echo "waited $seconds s for $wish: $seen"; return 1; }
        sleep 1
    done
}
