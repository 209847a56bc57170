# Functions for users.

# user, command...: in the user's home, with the rights of the user alone
as_user() {
    entry=$(getent passwd -- "$1") || { echo "there is no user $1"; return 1; }
    shift
    entry=${entry#*:*:}
    uid=${entry%%:*} entry=${entry#*:}
    gid=${entry%%:*} entry=${entry#*:*:}
    home=${entry%%:*}
    cd -- "$home" || return
    if [ "$(id -u)" = "$uid" ]; then "$@"; else setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"; fi
}

# bytes of a line user:hash, which must not appear in argument lists
password() {
    line=$(head -c "$1" <&3)
    [ "${#line}" = "$1" ] || { echo "only ${#line} of $1 bytes arrived"; return 1; }
    chpasswd -e 3<&- <<END
$line
END
}
