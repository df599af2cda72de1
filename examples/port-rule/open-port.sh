# Keeps one port of the node open until it is told to stop. It needs nft, grep, sleep, and CAP_NET_ADMIN in the network
# namespace of the node.
#
# TABLE      the PortRule's own table
# CHAIN      this pod's own chain in it: whose chain is there, has the table
# PROTOCOL   tcp, udp or sctp
# PORT       its number
# MARK       the bit by which the node's own ruleset knows what is let in
# COMMENT    what an admin of the node reads beside the rule
# PERMANENT  "true": the rule stays when the pod goes
set -eu

# The API server has judged all of these by the CRD. What is put into nft's input is judged once more.
for word in "$TABLE" "$CHAIN" "$PROTOCOL" "$PORT" "$MARK"; do
  case $word in
    '' | *[!A-Za-z0-9._-]*) echo "not a name, and not a number: $word" >&2 && exit 2 ;;
  esac
done
case $COMMENT in
  *[!A-Za-z0-9\ ._-]*) echo "not a name: $COMMENT" >&2 && exit 2 ;;
esac

is_open() {
  nft list chain inet "$TABLE" "$CHAIN" 2>/dev/null | grep -q "$PROTOCOL dport $PORT "
}

# One transaction: the rule of the pod before is replaced without a moment in between.
open_port() {
  nft -f - <<RULES
add table inet $TABLE
delete table inet $TABLE
table inet $TABLE {
  chain $CHAIN {
    type filter hook input priority filter - 10; policy accept;
    $PROTOCOL dport $PORT meta mark set meta mark or $MARK accept comment "$COMMENT"
  }
}
RULES
  echo "$PROTOCOL port $PORT is open, by table $TABLE"
}

# One transaction as well: where the pod that comes after has the table already, the chain is missing, and nothing is deleted.
close_port() {
  nft -f - <<RULES
flush chain inet $TABLE $CHAIN
delete chain inet $TABLE $CHAIN
delete table inet $TABLE
RULES
}

stop() {
  if [ "$PERMANENT" = true ]; then
    echo "table $TABLE stays on the node"
  else
    close_port && echo "$PROTOCOL port $PORT is no longer open by table $TABLE"
  fi
  exit 0
}
trap stop TERM INT

open_port
while :; do
  sleep 10 &
  wait $!
  # Whoever loads the node's ruleset anew takes ours away too.
  is_open || open_port
done
