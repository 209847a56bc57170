command -v cloud-init >/dev/null || exit 1
# Disabled by an operator, or by its own generator for this boot.
if [ -e /etc/cloud/cloud-init.disabled ] || [ -e /run/cloud-init/disabled ]; then exit 1; fi

# Files that exist: what the last of them sets. With `localhost`, other names than the host's own are kept.
last() {
    sed -n "s/^manage_etc_hosts:[[:space:]]*['\"]\{0,1\}\([[:alnum:]]*\).*/\1/p" "$@" 2>/dev/null |
        tail -n 1 | tr A-Z a-z
}
replaces() {
    case $1 in true | yes | on | 1 | template) ;; *) return 1 ;; esac
}

instance=/var/lib/cloud/instance
given=$(last $instance/vendor-cloud-config.txt $instance/vendor2-cloud-config.txt $instance/cloud-config.txt)
if [ -n "$given" ]; then
    if replaces "$given"; then exit 3; else exit 1; fi
fi
replaces "$(last /etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d/*.cfg)"
