# After inventory.sh: prints what was recorded, if anything was, and what there is.
if cat /var/lib/metalform/before/inventory 2>/dev/null; then
    echo '--'
    inventory
else
    # Nothing shows what was changed.
    echo 'none'
    echo '--'
    names_of_inventory
fi
