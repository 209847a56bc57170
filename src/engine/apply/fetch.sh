# Download functions. A file is downloaded beside its place and moved there when it is complete, so that a killed run
# leaves the old or the new one.

# URL, CA file or nothing; prints what was downloaded. The URL may contain a password, which arguments would show to all
# users. A server with a CA file is a private one, which a proxy does not reach; one that is being restarted refuses
# connections for some seconds.
download() {
    if command -v curl >/dev/null; then
        printf 'url = "%s"\n' "$1" |
            curl -q -fsSL -g --proto '=http,https' --connect-timeout 10 --speed-limit 1 --speed-time 60 --retry 4 \
                --retry-connrefused ${2:+--noproxy} ${2:+'*'} ${2:+--cacert} ${2:+"$2"} -K - 3<&-
    elif command -v wget >/dev/null; then
        printf '%s\n' "$1" |
            wget --no-config -nv -O - --timeout=60 --tries=5 --waitretry=5 --retry-connrefused ${2:+--no-proxy} \
                ${2:+"--ca-certificate=$2"} -i - 3<&-
    elif command -v apt-get >/dev/null && [ "${1#*@}" = "$1" ]; then
        download_by_apt "$1" "$2"
    else
        echo "the host has neither curl nor wget to download with" >&2
        return 1
    fi
}

# The same, for a URL without a password: it is an argument. A minimal Debian has apt alone.
download_by_apt() {
    fetched=$(mktemp -d) || return
    /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root -o Acquire::Retries=2 \
        ${2:+-o} ${2:+"Acquire::https::CaInfo=$2"} ${2:+-o} ${2:+Acquire::https::Proxy=DIRECT} download-file "$1" "$fetched/file" >&2 3<&- &&
        cat -- "$fetched/file"
    set -- "$?"
    rm -rf -- "$fetched"
    return "$1"
}

# file, URL, SHA-256, CA file or nothing
fetch() {
    # -C: an existing file or link is not followed.
    (umask 077 && set -C && download "$2" "$4" >"$1") || return
    sum=$(sha256sum <"$1") && sum=${sum%% *}
    [ "$sum" = "$3" ] || { echo "the downloaded file has the sha256 $sum, not $3"; return 1; }
}

# directory, start of the temporary name, path, owner:group, mode, URL, SHA-256, CA file or nothing
bring() {
    [ -d "$1" ] || mkdir -p -- "$1" || return
    sweep "$2"
    {
        fetch "$2$$" "$6" "$7" "$8" &&
            chown -h -- "$4" "$2$$" && chmod -- "$5" "$2$$" &&
            sync -- "$2$$" && mv -fT -- "$2$$" "$3" && label "$3"
    } || {
        set -- "$?" "$2$$"
        rm -f -- "$2"
        return "$1"
    }
}

# The same, and then: how many leading directories to strip, the marker's text
unpack() {
    [ -d "$1" ] || mkdir -p -- "$1" || return
    remove_trees "$2"
    unpack_beside "$2$$" "$4" "$5" "$6" "$7" "$8" "$9" "${10}" && exchange "$2$$.new" "$3" "$2$$.old" &&
        label -R "$3"
    set -- "$?" "$2"
    remove_trees "$2"
    return "$1"
}

# start of the names of temporary files and trees
remove_trees() {
    for old in "$1"*; do
        if [ -e "$old" ] || [ -L "$old" ]; then rm -rf --one-file-system -- "$old"; fi
    done
}

# start of the temporary names, owner:group, mode, URL, SHA-256, CA file, directories to strip, marker
# tar refuses members outside the tree, does not write through links that it made, and removes a leading slash.
unpack_beside() {
    fetch "$1.tar" "$4" "$5" "$6" &&
        mkdir -m 0700 -- "$1.new" &&
        tar -x -f "$1.tar" -C "$1.new" --strip-components="$7" --no-same-owner --no-same-permissions 3<&- ||
        return
    [ -n "$(ls -A -- "$1.new")" ] || { echo "the archive contains nothing below $7 directories"; return 1; }
    rm -rf -- "$1.new/.metalform-archive" &&
        (set -C && printf '%s' "$8" >"$1.new/.metalform-archive") &&
        chown -hR -- "$2" "$1.new" && chmod -- "$3" "$1.new" && sync -f -- "$1.new"
}

# new directory, its place, temporary name of the old one
exchange() {
    if [ -L "$2" ] || [ ! -d "$2" ] || [ -z "$(ls -A -- "$2")" ]; then
        # An empty directory is replaced by a rename (rename(2)).
        mv -T -- "$1" "$2"
    elif [ ! -f "$2/.metalform-archive" ]; then
        echo "$2 is not empty, and no archive was unpacked there by metalform"
        return 1
    else
        # Since coreutils 9.5 in one step; before, the place is empty for an instant between two renames.
        mv --exchange -T -- "$1" "$2" 2>/dev/null ||
            { mv -T -- "$2" "$3" && { mv -T -- "$1" "$2" || { mv -T -- "$3" "$2"; return 1; }; }; }
    fi
}
