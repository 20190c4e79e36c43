/**
 * The scripts that `tidemark completion` prints. Each asks `tidemark __complete SHELL WORDS...`, where the last
 * word is the one at the cursor, and adds files if the answer has a line `:files SUFFIX`. Words are passed on
 * one by one as they were typed; nothing in the command line is evaluated.
 */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

const BASH = `# bash completion of tidemark
_tidemark() {
    # The second argument is the text that bash replaces: after = and : only the rest of the word.
    local cur=$2 value text files suffix i
    local -a values=() texts=() found=()
    COMPREPLY=()
    while IFS=$'\\t' read -r value text; do
        if [[ $value == :files ]]; then
            files=1 suffix=$text
        else
            values+=("$value") texts+=("$text")
        fi
    done < <("$1" __complete bash "$cur" "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
    if [[ -n $files ]]; then
        mapfile -t found < <(compgen -f -X "!*$suffix" -- "$cur")
        if [[ -n $suffix ]]; then
            if ((\${#found[@]})); then
                mapfile -t -O \${#found[@]} found < <(compgen -d -- "$cur")
            else
                mapfile -t found < <(compgen -f -- "$cur")
            fi
        fi
    fi
    if ((\${#found[@]})); then
        compopt -o filenames 2> /dev/null
        COMPREPLY=("\${values[@]}" "\${found[@]}")
    elif ((\${#values[@]} == 1)); then
        COMPREPLY=("\${values[0]}")
    else
        # Several candidates are listed with their descriptions; bash inserts only their common prefix.
        for i in "\${!values[@]}"; do
            COMPREPLY+=("\${values[i]}\${texts[i]:+  (\${texts[i]})}")
        done
    fi
}
complete -F _tidemark tidemark tidemark-profiler
`;

const ZSH = `#compdef tidemark tidemark-profiler
# zsh completion of tidemark
_tidemark() {
    local line value text files suffix found=1
    local -a values
    while IFS=$'\\t' read -r value text; do
        if [[ $value == :files ]]; then
            files=1 suffix=$text
        else
            values+=("\${value//:/\\\\:}\${text:+:$text}")
        fi
    done < <(\${~words[1]} __complete zsh "\${(@Q)words[2,CURRENT]}" 2> /dev/null)
    (( \${#values} )) && _describe -t values tidemark values && found=0
    [[ -n $files ]] && _files \${suffix:+-g "*$suffix"} && found=0
    return found
}
if [[ \${funcstack[1]} == _tidemark ]]; then
    _tidemark "$@"
else
    (( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
    compdef _tidemark tidemark tidemark-profiler
fi
`;

const FISH = `# fish completion of tidemark
function __tidemark_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $words[1] __complete fish $words[2..-1] "$current" 2> /dev/null)
        set -l parts (string split -m 1 \\t -- $line)
        if test "$parts[1]" != :files
            echo $line
        else
            set -l all (__fish_complete_path "$current")
            set -l wanted (string match -r -- ".*(?:/|\\Q$parts[2]\\E)(?:\\t.*)?\\$" $all)
            if test (count $wanted) -gt 0
                printf "%s\\n" $wanted
            else if test (count $all) -gt 0
                printf "%s\\n" $all
            end
        end
    end
end
complete -c tidemark -f -k -a "(__tidemark_complete)"
complete -c tidemark-profiler -f -k -a "(__tidemark_complete)"
`;

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}
