# The host shuts down a second later, so that this program and its connection end normally.
reboot_soon() {
    command -v systemctl >/dev/null || { echo "the host has no systemctl to reboot with"; return 1; }
    setsid sh -c 'sleep 1; exec systemctl reboot' </dev/null >/dev/null 2>&1 3<&- &
}
