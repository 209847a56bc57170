# After recorded.sh and installed_packages.sh.

# prints the installed packages that came with those of the states: without the list, all that were not there before. What
# was installed by its name, and is in no state, an administrator has installed since.
brought_packages() {
    test -f "$before/inventory" || return 0
    if test -f "$before/brought"; then
        installed_packages | unrecorded package | grep -xFf "$before/brought"
    else
        installed_packages | unrecorded package
    fi | grep -vxF "$(packages_installed_by_name)"
}
