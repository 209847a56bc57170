# Gives the copy its $name, in place of another file, once its SHA-256 is $digest. $directory: its path.
set -e
cd "$directory"
sync .metalform-copy
found=$(sha256sum <.metalform-copy | cut -d ' ' -f 1)
test "$found" = "$digest" || {
    echo "the SHA-256 of the copy is $found, expected $digest" >&2
    exit 1
}
mv -f -T .metalform-copy "$name"
sync .
