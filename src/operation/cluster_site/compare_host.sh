# After inventory.sh: prints what was recorded, if anything was, and what there is.
cat /var/lib/metalform/before/inventory 2>/dev/null || echo 'none'
echo '--'
inventory
