# Functions that ask systemd about unit files before they are installed. Copies under their real names lie in
# a directory that goes with the log.

units=$log.units

# bytes, name
stage_unit() {
    [ -d "$units" ] || mkdir -m 0700 -- "$units" || return
    head -c "$1" <&3 >"$units/$2" && arrived "$1" "$units/$2"
}

# names...; one process for all of them
ask_about_units() {
    command -v systemd-analyze >/dev/null || return 0
    count=$#
    for name in "$@"; do set -- "$@" "$units/$name"; done
    shift "$count"
    # Its exit status differs from version to version, and tells nothing about a single unit.
    timeout 60 systemd-analyze verify --man=no -- "$@" >"$units/.said" 2>&1 </dev/null 3<&- || :
}

# name, pattern of the names of its instances or nothing, "secret" or nothing: fails when systemd would ignore
# something in the unit file, or refuse it. Programs and units that do not exist yet are not its fault.
judge_unit() {
    [ -f "$units/.said" ] || return 0
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
    done <"$units/.said"
    [ "$good" = 0 ] || [ -z "$3" ] || echo "systemd would ignore or refuse something in $1, which is not shown"
    return "$good"
}
