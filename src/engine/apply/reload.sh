# Functions after which systemd knows the unit files. A reload of all of them takes a tenth of a second or more.

# unit; reloads unit files if systemd has read any of this unit, or of an instance of this template. It reads those of a
# unit that it needs, also where others have named the unit before there was a file of it; but a timer is refused while its
# unit, whose file was removed, has failed or is active.
reload_unit() {
    case $1 in *@.*) set -- "${1%%@.*}@*.${1##*@.}" ;; esac
    known=$(systemctl list-units --all --plain --no-legend --state=loaded,masked,bad-setting,error,merged,active,failed -- "$@") &&
        [ -z "$known" ] || systemctl daemon-reload
}

# units...; by one command, those that are not enabled yet. systemd takes notice at the next reload.
enable_units() {
    count=$#
    for unit in "$@"; do
        [ "$(systemctl is-enabled -- "$unit" 2>/dev/null)" = enabled ] || set -- "$@" "$unit"
    done
    shift "$count"
    [ $# = 0 ] || without_reload enable "$@"
}

# enable or disable, units...; for a unit with an init script, update-rc.d(8) reloads twice in spite of the option:
# SYSTEMD_OFFLINE, which changes nothing else of these commands, holds for it too
without_reload() {
    verb=$1
    shift
    SYSTEMD_OFFLINE=1 systemctl "$verb" --no-reload -- "$@"
}
