#!/bin/sh
# folders.sh OBJECTS - checks the order of the folders of src/ in README.md's table: a file may include headers and call
# functions only of its own folder and of folders above it. Prints "ok" or "not ok", and each file that breaks it.
# OBJECTS holds the compiled files, in one folder per folder of src/. The functions that sampling/lifecycle.h declares
# are exempt: lifecycle/ defines them.
objects=$1
agent=$(cd "$(dirname "$0")/.." && pwd)
order=$(sed -n 's/^| `\([a-z]*\)\/` |.*| [^|]* |$/\1/p' "$agent/README.md" | tr '\n' ' ')
place='BEGIN { count = split(order, folders, " "); for (i = 1; i <= count; i++) place[folders[i]] = i }
       function backward(from, to) { return !(from in place) || !(to in place) || place[to] > place[from] }'

includes() {
    (cd "$agent/src" && grep -H '^#include "[a-z]*/' ./*/*.[ch]) | awk -F'[:"]' -v order="$order" "$place"'
        { split($1, path, "/"); split($3, header, "/")
          if (backward(path[2], header[1])) print path[2] "/" path[3] " includes " $3 }'
}

# The agent's own symbols only: it also defines some of the C library's, as hooks.
symbols() {
    for source in "$agent"/src/*/*.c; do
        file=${source#"$agent"/src/}
        nm -g "$objects/${file%.c}.o" | awk -v file="$file" '$NF ~ /^tm_/ { print file, $(NF - 1), $NF }'
    done
}

calls() {
    { sed -n 's/^.*\(tm_[a-z_]*\)(.*$/excepted - \1/p' "$agent/src/sampling/lifecycle.h"; symbols; } |
        awk -v order="$order" "$place"'
        { split($1, path, "/") }
        $1 == "excepted" { excepted[$3] = 1; next }
        $2 == "U" { users[$3] = users[$3] " " $1; next }
        { home[$3] = path[1] }
        END { for (name in users) if (name in home && !(name in excepted)) {
                  count = split(users[name], files, " ")
                  for (i = 1; i <= count; i++) { split(files[i], path, "/")
                      if (backward(path[1], home[name])) print files[i] " uses " name " of " home[name] "/" } } }'
}

broken=$(includes; calls)
if [ -z "$broken" ]; then
    echo "ok 1 - the folders of src/ include and call each other in one direction"
else
    echo "not ok 1 - the folders of src/ include and call each other in one direction"
    echo "$broken" | sed 's/^/# /'
    exit 1
fi
