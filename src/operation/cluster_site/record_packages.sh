# After record_host.sh, installed_packages.sh and the installation of the node's packages: records, once, which ones came.
set -e
before=/var/lib/metalform/before
if test -d "$before" && test ! -e "$before/brought"; then
    installed_packages | while read -r package; do
        grep -q "^package	$package	" "$before/inventory" || echo "$package"
    done >"$before/brought.new"
    mv "$before/brought.new" "$before/brought"
fi
