# paths; whether every link on the way to them leads to something. mkdir goes on after a path that it cannot make: it might
# make what such a link leads to, and the path could be made when it is tried once more.
no_dangling_link() {
    for path; do
        rest=${path#/}/ part=
        while [ -n "$rest" ]; do
            part=$part/${rest%%/*} rest=${rest#*/}
            if [ -L "$part" ] && ! [ -e "$part" ]; then
                return 1
            fi
        done
    done
}
