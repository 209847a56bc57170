# After recorded.sh: what kube-proxy and the network plugins have set in the kernel stays when they end. What was there
# before is an administrator's.
if command -v nft >/dev/null; then
    nft list tables | sed -n 's/^table //p' | grep -E ' (kube-proxy|cni_[a-z_]*)$' | unrecorded nftables |
        while read -r table; do
            nft delete table $table
        done
fi
for family in ip:iptables ip6:ip6tables; do
    iptables=${family#*:} family=${family%:*}
    command -v "$iptables-save" >/dev/null || continue
    if "$iptables-save" 2>/dev/null | grep -q -e KUBE- -e CNI-; then
        "$iptables-save" | grep -v -e KUBE- -e CNI- | "$iptables-restore"
    fi
    rules=$("$iptables-save" 2>/dev/null) || continue
    # Without a rule, a chain of its own or a policy that drops, its tables do nothing. Tables that only nft can show are not
    # among them.
    if command -v nft >/dev/null && ! printf '%s\n' "$rules" | grep -q -e '^-A' -e '^:[^ ]* [-D]'; then
        printf '%s\n' "$rules" | sed -n "s/^\*/$family /p" | unrecorded nftables |
            while read -r table; do
                nft delete table $table 2>/dev/null || true
            done
    fi
done
