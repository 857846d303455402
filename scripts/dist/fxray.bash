# Completion of fxray for bash. All words come from the program itself: its --help and its tables.
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2207  # words of the tables have neither blanks nor patterns

_fxray_help() { # commands or flags, or the values of one flag
    "${_fxray_program:-fxray}" --help 2>/dev/null | awk -v want="$1" -v flag="${2:-}" '
        /^[A-Z][a-z]*:$/ { part = $1; next }
        want == "commands" && part == "Commands:" && /^  / { print $1 }
        part == "Flags:" && /^  -/ {
            value = ""
            for (i = 1; i <= NF && i < 4; i++) {
                if ($i ~ /^-/) {
                    word = $i
                    sub(/,$/, "", word)
                    if (want == "flags") print word
                    if (word == flag) value = $(i + 1)
                }
            }
            if (want == "values" && value != "") { gsub(/[|]/, "\n", value); print value; exit }
        }'
}

_fxray_table() { # first column of a table
    "${_fxray_program:-fxray}" -c "table $1" 2>/dev/null | sed -n 's/^| `\([^`]*\)`.*/\1/p'
}

_fxray() {
    local cur=$2 prev=$3 words=
    _fxray_program=$1
    COMPREPLY=()
    case $prev in
    --backend) words=$(_fxray_table backends) ;;
    --toolchain) words=$(_fxray_table toolchains) ;;
    --stage) words=$(_fxray_table stages) ;;
    --set) words=$(_fxray_table settings | sed 's/$/=/') ;;
    -c | --command | --hint | --bind | --seed | --threads | --screen | --fault) return ;;
    -x | --script | --values) words= ;;
    --out) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    -*) words=$(_fxray_help values "$prev") && [[ $words == *$'\n'* ]] || words= ;;
    esac
    if [ -z "$words" ]; then
        case $cur in
        -*) words=$(_fxray_help flags) ;;
        *) [ "$COMP_CWORD" -eq 1 ] && words=$(_fxray_help commands) ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _fxray fxray
