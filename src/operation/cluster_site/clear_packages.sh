# After brought_packages.sh: removes what came with the packages of the states and is there still.
brought=$(brought_packages)
test -z "$brought" || purge_packages $brought || true
