# Functions that verify unit files before they are installed. Copies with their real names are in a directory that is
# removed with the log.

units=$log.units

# bytes, name
stage_unit() {
    [ -d "$units" ] || mkdir -m 0700 -- "$units" || return
    head -c "$1" <&3 >"$units/$2" && arrived "$1" "$units/$2"
}

# names...; one process for all of them
verify_units() {
    command -v systemd-analyze >/dev/null || return 0
    count=$#
    for name in "$@"; do set -- "$@" "$units/$name"; done
    shift "$count"
    # Its exit status differs between versions, and is not about a single unit.
    timeout 60 systemd-analyze verify --man=no -- "$@" >"$units/.messages" 2>&1 </dev/null 3<&- || :
}

# name, pattern of the names of its instances or nothing, "secret" or nothing; fails when systemd would ignore a setting
# of the unit file, or refuse it. Missing programs and units are no errors.
judge_unit() {
    [ -f "$units/.messages" ] || return 0
    good=0
    while IFS= read -r line; do
        case $line in
            "$units/$1:"* | "$1: "* | "Unit $1 "*) ;;
            *) case $line in ${2:-//}": "* | "Unit "${2:-//}" "*) ;; *) continue ;; esac ;;
        esac
        case $line in
            *[Ii]gnoring* | *[Rr]efusing* | *"bad unit file setting"* | *"fatal error"*) ;;
            *) continue ;;
        esac
        good=1
        [ -n "$3" ] || printf '%s\n' "${line#"$units/"}"
    done <"$units/.messages"
    [ "$good" = 0 ] || [ -z "$3" ] || echo "systemd would ignore or refuse something in $1, which is not shown"
    return "$good"
}
