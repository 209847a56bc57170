# Writes ~/.ssh/authorized_keys. Runs as the user of the keys, in the home, after the functions of edit.sh.
# Arguments: bytes, digest of the existing file (empty: no file). Standard input: the content.
umask 077
if [ -L .ssh ]; then
    echo ".ssh is a link"
    exit 1
fi
[ -d .ssh ] || mkdir -- .ssh || exit
chmod -- 0700 .ssh && cd .ssh && unchanged authorized_keys "$2" || exit
rm -f -- .metalform.authorized_keys.*
new=.metalform.authorized_keys.$$
{
    head -c "$1" >"$new" && [ "$(stat -c %s -- "$new")" = "$1" ] && sync -- "$new" &&
        unchanged authorized_keys "$2" && mv -fT -- "$new" authorized_keys
} || {
    set -- "$?"
    rm -f -- "$new"
    echo "the keys could not be written"
    exit "$1"
}
