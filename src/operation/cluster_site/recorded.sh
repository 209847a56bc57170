before=/var/lib/metalform/before

# section; names on standard input, a line each; prints `NAME<tab>VALUE` of those that were recorded
recorded() {
    test -f "$before/inventory" || return 0
    awk -F '\t' -v section="$1" '
        FILENAME != ARGV[2] { asked[$0]; next }
        $1 == section && $2 in asked { sub(/^[^\t]*\t/, ""); print }
    ' - "$before/inventory"
}

# section; names as above; prints those that were not recorded, and packages that were not installed then
unrecorded() {
    inventory=$before/inventory
    test -f "$inventory" || inventory=/dev/null
    awk -F '\t' -v section="$1" '
        FILENAME != ARGV[1] { if (!($0 in were)) print; next }
        $1 == section && !(section == "package" && $3 ~ / (config-files|not-installed)$/) { were[$2] }
    ' "$inventory" -
}
