# Removes $names, and a copy that was only begun. $directory: its path.
set -e
cd "$directory"
rm -f -- .metalform-copy $names
