# After recorded.sh, installed_packages.sh and the installation of the node's packages: records, once, which ones came.
set -e
if test -d "$before" && test ! -e "$before/brought"; then
    installed_packages | unrecorded package >"$before/brought.new"
    mv "$before/brought.new" "$before/brought"
fi
