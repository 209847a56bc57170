# Functions over the packages of this host, by dpkg or rpm.

installed_packages() {
    if command -v dpkg-query >/dev/null; then
        installed_by_dpkg
    else
        # The keys that rpm trusts are packages of one name.
        rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' |
            awk '{ print $1 ($1 == "gpg-pubkey" ? "-" $2 : "") }' | sort -u
    fi
}

# names, or none for all; of some packages dpkg has only the configuration files
installed_by_dpkg() {
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
        sed -n '/^\(not-installed\|config-files\) /!s/^[^ ]* //p'
}

# Without what dnf knows, none: then all packages count as dependencies.
packages_installed_by_name() {
    if command -v dpkg-query >/dev/null; then
        apt-mark showmanual
    else
        LC_ALL=C dnf -q -C --disablerepo='*' repoquery --userinstalled --qf '%{name}\n'
    fi 2>/dev/null
}

# names; those that another package needs stay
purge_packages() {
    if command -v dpkg-query >/dev/null; then
        DEBIAN_FRONTEND=noninteractive dpkg --purge "$@" 2>&1
        return
    fi
    # rpm removes all or none, and says: `	libc.so.6 >= 2.34 is needed by (installed) bash-5.1.8-9.el9.x86_64`.
    while [ $# -gt 0 ] && ! broken=$(LC_ALL=C rpm -e --test --allmatches "$@" 2>&1); do
        needed=$(printf '%s\n' "$broken" |
            sed -n 's/^[[:space:]]*(*\([^[:space:]]*\).* is needed by (installed) .*/\1/p' |
            xargs -r rpm -q --qf '%{NAME}\n' --whatprovides)
        left=$(printf '%s\n' "$@" | grep -vxF "$needed")
        test "$left" != "$(printf '%s\n' "$@")" || break
        set -- $left
    done
    test $# -eq 0 || rpm -e --allmatches "$@" 2>&1
}

# names, with dpkg also options; prints the other packages that need one of them, as `apt-get --simulate purge` does
dependent_packages() {
    if command -v apt-get >/dev/null; then
        apt-get --simulate --allow-change-held-packages purge "$@"
        return
    fi
    while
        dependents=$(LC_ALL=C rpm -e --test --allmatches "$@" 2>&1 |
            sed -n 's/.* is needed by (installed) //p' | xargs -r rpm -q --qf '%{NAME}\n' | sort -u)
        test -n "$dependents"
    do
        printf 'Remv %s\n' $dependents
        set -- "$@" $dependents
    done
}
