# Functions for the markers of owed reactions.

# directory, marker, the resource that reacts, the resource that changes
owe() {
    [ ! -e "$1/$2" ] || return 0
    mkdir -p -m 0700 -- "$1" && printf '%s\n' "$3" "$4" >"$1/$2" || return
    # On the disk before the change is; what is in /run is gone with the power anyway.
    case $1 in /run/*) ;; *) sync -- "$1/$2" "$1" ;; esac
}

# directory, marker
settle_owed() {
    [ ! -e "$1/$2" ] || rm -f -- "$1/$2"
}
