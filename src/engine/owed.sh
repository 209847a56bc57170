# Directories of the markers of owed reactions. A boot empties /run. A user other than root has directories in the home.
owed=/var/lib/metalform/owed owed_until_boot=/run/metalform/owed
if [ ! -w /run ]; then
    owed=${XDG_STATE_HOME:-${HOME-}/.local/state}/metalform/owed owed_until_boot=$owed
fi
