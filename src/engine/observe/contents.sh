# Selects the contents to send. `sums` is the output of sha256sum, in the order of the calls of `file`, so what precedes
# a line that was found is not searched again.
set --
n= rest="
$sums
"
same() {
    case $rest in
        *"
$1
"*) rest=${rest#*"
$1
"}
            rest="
$rest" ;;
        *) return 1 ;;
    esac
}
# number, path, digest that it should have, the whole line of sha256sum where the path is escaped in it
file() { [ -L "$2" ] || [ ! -f "$2" ] || same "${4-$3  $2}" || take "$1" "$2"; }
# number, path
text() { [ ! -f "$2" ] || take "$1" "$2"; }
take() { n="$n $1"; eval "p$1=\$2"; }
