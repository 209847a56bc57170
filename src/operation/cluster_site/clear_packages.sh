# After recorded.sh and installed_packages.sh: removes what came with the packages of the states.
if test -f "$before/inventory"; then
    brought=
    for package in $(installed_packages); do
        if test ! -f "$before/brought" || grep -qxF "$package" "$before/brought"; then
            recorded package "$package" >/dev/null || brought="$brought $package"
        fi
    done
    test -z "$brought" || purge_packages $brought || true
fi
