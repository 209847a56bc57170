# After recorded.sh: what kube-proxy and the network plugins have set in the kernel stays when they end. What was there
# before is an administrator's, and so are tables that iptables could not have made.

# iptables or ip6tables; of another's table it prints as much as it understands
rules_of() {
    "$1-save" 2>/dev/null | awk '
        /^# Table .*incompatible/ { gsub(/[^a-z]/, "", $3); foreign[$3] }
        /^\*/ { skip = substr($0, 2) in foreign }
        !skip
    '
}

if command -v nft >/dev/null; then
    nft list tables | sed -n 's/^table //p' | grep -E ' (kube-proxy|metalform|cni_[a-z_]*)$' | unrecorded nftables |
        while read -r table; do
            nft delete table $table
        done
fi
for family in ip:iptables ip6:ip6tables; do
    iptables=${family#*:} family=${family%:*}
    command -v "$iptables-save" >/dev/null || continue
    rules=$(rules_of "$iptables")
    if printf '%s\n' "$rules" | grep -q -e KUBE- -e CNI-; then
        printf '%s\n' "$rules" | grep -v -e KUBE- -e CNI- | "$iptables-restore"
        rules=$(rules_of "$iptables")
    fi
    # Without a rule, a chain of its own or a policy that drops, its tables do nothing.
    if command -v nft >/dev/null && ! printf '%s\n' "$rules" | grep -q -e '^-A' -e '^:[^ ]* [-D]'; then
        printf '%s\n' "$rules" | sed -n "s/^\*/$family /p" | unrecorded nftables |
            while read -r table; do
                nft delete table $table 2>/dev/null || true
            done
    fi
done
