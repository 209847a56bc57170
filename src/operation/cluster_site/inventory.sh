# After installed_packages.sh. Both functions print what there is on this host that metalform changes: section, name and value,
# with tabs between. They change nothing.

inventory() {
    # systemctl takes as long as all else together.
    systemctl list-unit-files --no-legend --no-pager | awk '{ print "unit\t" $1 "\t" $2 }' &
    others=$(
        names_but_units
        sysctl -a 2>/dev/null | sed -n 's/^\([^ ]*\) = /sysctl\t\1\t/p'
        find /etc -xdev -type f -exec sha256sum {} + | sed 's/^\([0-9a-f]*\)  \(.*\)$/file\t\2\t\1/'
    )
    wait "$!"
    printf '%s\n' "$others"
} 2>/dev/null

# The same without what tells only whether something was changed, in a third of the time.
names_of_inventory() {
    for place in /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system; do
        find "$place" -maxdepth 1 ! -type d -printf 'unit\t%f\t\n'
    done
    names_but_units
} 2>/dev/null

names_but_units() {
    if command -v dpkg-query >/dev/null; then
        dpkg-query -W -f 'package\t${Package}\t${db:Status-Want} ${db:Status-Status}\n'
    else
        installed_packages | sed 's/.*/package\t&\tinstall installed/'
    fi
    awk -F: '{ print "user\t" $1 "\t" $0 }' /etc/passwd
    awk -F: '{ print "group\t" $1 "\t" $0 }' /etc/group
    awk '$2 !~ "^/(proc|sys|dev|run|tmp)(/|$)" { print "mount\t" $2 "\t" $3 }' /proc/mounts
    ip -o link | awk '{ sub(/[@:].*/, "", $2); print "link\t" $2 "\t" }'
    ip route show table all | awk '{ $1 = $1; print "route\t" $0 "\t" }'
    if command -v nft >/dev/null; then
        nft list tables | sed 's/^table \(.*\)$/nftables\t\1\t/'
    fi
    find /opt /usr/libexec /usr/local /var/lib /var/log -maxdepth 2 -printf 'path\t%p\t%y %m %U:%G %l\n'
    find /etc -xdev -printf 'path\t%p\t%y %m %U:%G %l\n'
}
