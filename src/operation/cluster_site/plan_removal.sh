# After installed_packages.sh: prints what was recorded before metalform changed this host, and which packages would be
# removed with those in $packages. Changes nothing.
if command -v apt-get >/dev/null; then
    # A run that was killed may have left apt at work: what it installs belongs to the plan.
    apt-get -qq -o DPkg::Lock::Timeout=120 check >/dev/null 2>&1 || true
fi
cat /var/lib/metalform/before/inventory 2>/dev/null || echo 'none'
if command -v dpkg-query >/dev/null; then
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages 2>/dev/null |
        sed -n '/^\(not-installed\|config-files\) /!s/^[^ ]* //p')
else
    installed=$(for package in $packages; do ! rpm -q --quiet "$package" || echo "$package"; done)
fi
test -z "$installed" || dependent_packages $installed
