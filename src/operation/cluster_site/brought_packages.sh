# After recorded.sh and installed_packages.sh.

# prints the installed packages that came with those of the states: without the list, all that were not there before
brought_packages() {
    test -f "$before/inventory" || return 0
    if test -f "$before/brought"; then
        installed_packages | unrecorded package | grep -xFf "$before/brought"
    else
        installed_packages | unrecorded package
    fi
}
