# Prints each snapshot: its size, the SHA-256 of the database in it, the one that the member appended, its name. Changes
# nothing. $directory: its path.
cd "$directory" 2>/dev/null || exit 0
for file in etcd-*.db; do
    test -f "$file" && test ! -L "$file" || continue
    size=$(stat -c %s -- "$file") || continue
    found=$(head -c -32 -- "$file" | sha256sum | cut -d ' ' -f 1)
    appended=$(tail -c 32 -- "$file" | od -A n -v -t x1 | tr -d ' \n')
    # It may have been removed meanwhile.
    test ! -e "$file" || echo "$size $found ${appended:--} $file"
done
