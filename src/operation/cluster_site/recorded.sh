before=/var/lib/metalform/before

# section, name; prints the value that was recorded
recorded() {
    test -f "$before/inventory" &&
        awk -F '\t' -v section="$1" -v name="$2" \
            '$1 == section && $2 == name { print $3; found = 1 } END { exit !found }' "$before/inventory"
}
