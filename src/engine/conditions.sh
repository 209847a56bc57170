# Functions that check a condition. They succeed, or fail with 1 and set `seen` to one line about what was found instead;
# 2: this host cannot check it, and `seen` is the reason.

nl='
'

# host, port
accepts() {
    if command -v bash >/dev/null; then
        # "bash: connect: Connection refused", and a second line of the same.
        seen=$(timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1 </dev/null) && return
        seen=${seen%%"$nl"*} seen=${seen##*: }
        : "${seen:=no answer within 3 s}"
    elif command -v curl >/dev/null; then
        case $1 in *:*) set -- "[$1]" "$2" ;; esac
        # A connection is enough: the server need not use HTTP.
        seen=$(curl -q -sS -g --noproxy '*' -o /dev/null -w "$nl%{num_connects}$nl" --connect-timeout 2 -m 3 \
            "http://$1:$2/" 2>&1 </dev/null)
        case "$nl$seen$nl" in *"${nl}1$nl"*) return 0 ;; esac
        message_of_curl
    elif command -v nc >/dev/null; then
        timeout 3 nc -z "$1" "$2" >/dev/null 2>&1 </dev/null && return
        seen="no connection"
    else
        seen="the host has neither bash, curl nor nc to try a port with"
        return 2
    fi
    return 1
}

# URL, status, CA file or nothing. The URL may contain a password, which arguments would show to all users.
answers() {
    if command -v curl >/dev/null; then
        seen=$(printf 'url = "%s"\n' "$1" | curl -q -sS -g -o /dev/null -w "$nl%{http_code}$nl" --connect-timeout 2 \
            -m 3 ${3:+--cacert} ${3:+"$3"} -K - 2>&1)
        case "$nl$seen$nl" in *"$nl$2$nl"*) return 0 ;; esac
        case $seen in
            *"curl: ("*) message_of_curl ;;
            *) seen=${seen#"$nl"} seen="status ${seen%%"$nl"*}" ;;
        esac
    elif command -v wget >/dev/null; then
        seen=$(printf '%s\n' "$1" | timeout 3 wget --no-config -q -S -O /dev/null --tries=1 --max-redirect=0 \
            ${3:+"--ca-certificate=$3"} -i - 2>&1)
        case "$nl$seen" in
            *"$nl  HTTP/"*" $2 "* | *"$nl  HTTP/"*" $2$nl"*) return 0 ;;
            *"$nl  HTTP/"*) seen=${seen##*"  HTTP/"} seen=${seen#* } seen="status ${seen%%[ $nl]*}" ;;
            *) seen=${seen##*"$nl"} seen=${seen:-no answer within 3 s} ;;
        esac
    else
        seen="the host has neither curl nor wget to ask a URL with"
        return 2
    fi
    return 1
}

# "curl: (7) Failed to connect …" among other lines
message_of_curl() {
    seen=${seen#*"curl: ("} seen=${seen#*") "} seen=${seen%%"$nl"*}
}

# path
exists() {
    seen="it does not exist"
    [ -e "$1" ] || [ -L "$1" ]
}
