# Package functions, dnf 4 and 5. Given an exact version, `install` also goes back to it (dnf(8)). Locks of the
# given packages are released before a transaction and set after it; other locks are kept.

# On a host that is registered with Red Hat, this plugin of dnf 4 writes redhat.repo again at each run: sources besides
# metalform's. dnf 5 has another name for the option, and for the plugin.
without_plugin=
if [ -e /etc/dnf/plugins/subscription-manager.conf ] && [ ! -e /usr/bin/dnf5 ]; then
    without_plugin=--disableplugin=subscription-manager
fi

run_dnf() {
    dnf -q -y $without_plugin --setopt=install_weak_deps=False --setopt=clean_requirements_on_remove=False "$@" 3<&-
}

refresh_index() { run_dnf makecache --refresh; }

# name[-version]...; what was released before it is locked again if it fails
install_packages() {
    run_dnf install "$@" && return
    set -- "$?"
    # Names have no spaces. The error stays the last that is said.
    [ -z "$released" ] || run_dnf versionlock add $released >/dev/null 2>&1
    return "$1"
}

# As that of apt does.
remove_packages() {
    run_dnf remove "$@" || return
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
}

hold_packages() { run_dnf versionlock add "$@"; }

# Only locked packages: dnf takes as long without work as with it. dnf 4 has a list with lines
# `NAME-EPOCH:VERSION-RELEASE.*`, dnf 5 tables with lines `name = "NAME"`.
released=
release_packages() {
    locks=$(cat /etc/dnf/plugins/versionlock.list /etc/dnf/versionlock.toml 2>/dev/null)
    nl='
'
    for package in "$@"; do
        case $nl$locks$nl in
            *"$nl$package-"[0-9]* | *"$nl$package$nl"* | *"$nl$package-*$nl"* | *"$nl"name*"\"$package\"$nl"*)
                run_dnf versionlock delete "$package" || return
                released="$released $package"
                ;;
        esac
    done
}
