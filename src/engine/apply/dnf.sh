# Package functions, dnf. Given an exact version, `install` also goes back to it (dnf(8)). Locks are left
# aside during the transaction and set afterwards.

run_dnf() { dnf -q -y --setopt=install_weak_deps=False --setopt=clean_requirements_on_remove=False "$@" 3<&-; }

refresh_index() { run_dnf makecache --refresh; }

# name[-version]...
install_packages() { run_dnf --disableplugin=versionlock install "$@"; }

remove_packages() { run_dnf --disableplugin=versionlock remove "$@"; }

hold_packages() { run_dnf versionlock add "$@"; }

# Only what is locked: releasing anything else is an error to dnf.
release_packages() {
    [ -s /etc/dnf/plugins/versionlock.list ] || return 0
    for package in "$@"; do
        case $(cat /etc/dnf/plugins/versionlock.list) in
            *"$package-"*) run_dnf versionlock delete "$package" || return ;;
        esac
    done
}
