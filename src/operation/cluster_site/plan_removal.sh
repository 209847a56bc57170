# After brought_packages.sh: prints what was recorded before metalform changed this host, and which packages would be
# removed with those in $packages that were not there; and, as `Brought NAME`, those that can go in the same transaction:
# they came with them, and no other package needs them. Changes nothing.
if command -v apt-get >/dev/null; then
    # A run that was killed may have left apt at work: what it installs belongs to the plan.
    apt-get -qq -o DPkg::Lock::Timeout=120 check >/dev/null 2>&1 || true
fi
cat "$before/inventory" 2>/dev/null || echo 'none'
if command -v dpkg-query >/dev/null; then
    installed=$(installed_by_dpkg $packages)
else
    installed=$(for package in $packages; do ! rpm -q --quiet "$package" || echo "$package"; done)
fi
going=$(printf '%s\n' $installed | unrecorded package)
test -n "$going" || exit 0
if command -v apt-get >/dev/null; then
    brought=$(brought_packages)
    if simulated=$(dependent_packages --yes $going $brought) && ! printf '%s\n' "$simulated" |
        awk -v going=" $(echo $going $brought) " '
            $1 == "Purg" || $1 == "Remv" { sub(/:.*/, "", $2); if (!index(going, " " $2 " ")) print $2 }' | grep -q .
    then
        printf 'Brought %s\n' $brought
        exit 0
    fi
fi
dependent_packages $going
