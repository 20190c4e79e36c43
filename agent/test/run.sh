#!/bin/sh
# run.sh BUILD core|library - the checks of the agent: of its core, compiled into test programs, or of the real
# library under real programs. Prints "ok" and "not ok" lines; the last line is "N passed, N failed, N skipped".
# Checks that this machine cannot run count as skipped.
build=$1
part=$2
here=$(cd "$(dirname "$0")" && pwd)
library=$(cd "$build" && pwd)/libtidemark.so
programs=$(cd "$build" && pwd)/test/programs
work=$(mktemp -d) || exit 1
results=$work/results
: > "$results"
trap 'rm -rf "$work"' EXIT INT TERM

pass() { echo "ok - $1" | tee -a "$results"; }
fail() { echo "not ok - $1" | tee -a "$results"; }
skip() { echo "ok - $1 # SKIP $2" | tee -a "$results"; }
verdict() { if [ "$1" = 0 ]; then pass "$2"; else fail "$2"; fi; }

# ---- the core: plain, with sanitizers and under Valgrind ----
run_core() { # name, command...
    name=$1; shift
    # A test that hangs fails under its own name.
    timeout --foreground -k 5 400 "$@" > "$work/out" 2> "$work/errors"
    status=$?
    sed "s|^\(.*ok\) [0-9]* - |\1 - $name: |" "$work/out" | tee -a "$results"
    if [ $status != 0 ] || ! grep -q '^ok' "$work/out"; then fail "$name ran to its end"; fi
    if grep -q '^not ok' "$work/out"; then grep -v '^ok' "$work/errors" | head -40; fi
}
check_core() {
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1
# A thread that ended unjoined before a fork is reported as a leak in the child, which cannot join it.
export TSAN_OPTIONS=allocator_may_return_null=1:report_thread_leaks=0
for way in plain keyed address thread; do
    for test in numbers sampling tables control mappings openings processes pools slots late; do
        run_core "$way $test" "$build/test/$way/$test"
    done
done
if command -v valgrind > /dev/null; then
    for test in numbers tables control mappings slots "late 4"; do
        # Valgrind runs one thread at a time; without fair scheduling, a thread that never waits may starve the others.
        # shellcheck disable=SC2086
        run_core "valgrind $test" valgrind -q --fair-sched=yes --error-exitcode=9 "$build/test/plain/"$test
    done
else
    skip "valgrind" "not installed"
fi
}

check_library() {
# ---- the sources ----
run_core "sources" sh "$here/folders.sh" "$build/agent"

# ---- the library's properties: what it needs, what it exports ----
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.so\.6$' -e '^libdl\.so\.2$' -e '^libpthread\.so\.0$')
[ -z "$needed" ]; verdict $? "needs nothing but the C library $needed"
newest=$(readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sort -u -t_ -k2 -V | tail -1)
[ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -t_ -k2 -V | tail -1)" = GLIBC_2.28 ]
verdict $? "no symbol newer than GLIBC_2.28 (newest: $newest)"
readelf -dW "$library" | grep -q STATIC_TLS; verdict $? "thread state in static TLS"
tls=$(readelf -lW "$library" | awk '$1 == "TLS" {print $6}')
[ $((tls)) -le 64 ]; verdict $? "static TLS within 64 bytes ($((tls)))"
unexpected=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v -x -E 'malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|memalign|valloc|pvalloc|strdup|strndup|mmap|mmap64|munmap|mremap|dlsym|open|open64|openat|openat64|fopen|fopen64|socket|socketpair|accept|accept4|pipe|pipe2|epoll_create1|eventfd|tidemark_.*|PyInit__tidemark_agent')
[ -z "$unexpected" ]; verdict $? "exports no name by accident $unexpected"

# ---- the real library under real programs ----
on() { # options, command...
    options=$1; shift
    TIDEMARK=$options LD_PRELOAD=$library "$@"
}
summary() { "$programs/pool_summary" "$1"; }
new_pool() { "$programs/make_pool" "$work/pool" "$@"; }

new_pool 400 4096 0
out=$(on "pool=$work/pool" "$programs/stress" 2>&1); [ "$out" = fine ]; verdict $? "stress: threads, forks, dlopen, signals"
summary "$work/pool" | awk '/^pid/ {n++; if ($0 !~ /torn=0/) bad = 1} END {exit !(n > 60 && !bad)}'
verdict $? "stress: each process has a whole segment"
new_pool 400 4096 1
out=$(on "pool=$work/pool" "$programs/stress" 2>&1); [ "$out" = fine ]; verdict $? "stress with native stacks"

if [ -x "$programs/exceptions" ]; then
    new_pool 4 512 0
    out=$(on "pool=$work/pool" "$programs/exceptions" 2>&1); [ "$out" = fine ]; verdict $? "C++ exceptions and new_handler"
    new_pool 4 512 1
    out=$(on "pool=$work/pool" "$programs/exceptions" 2>&1); [ "$out" = fine ]; verdict $? "C++ exceptions with native stacks"
else
    skip "C++ exceptions" "no C++ compiler"
fi

new_pool 1024 65536 0
on "pool=$work/pool" "$programs/behaviour" > "$work/with" 2>&1
"$programs/behaviour" > "$work/without" 2>&1
cmp -s "$work/with" "$work/without" && grep -q 'first descriptor 3' "$work/with"; verdict $? "a program sees no difference"
diff "$work/without" "$work/with" | head -5
summary "$work/pool" | grep -c '^pid' | grep -qx 2; verdict $? "a child of closed descriptors is recorded"

new_pool 1024 65536 0
out=$(on "pool=$work/pool" "$programs/forks" 2>&1); [ "$out" = fine ]; verdict $? "200 children"
summary "$work/pool" | awk '/^pid/ {n++; live += substr($6, 10)} END {exit !(n > 190 && live > 120 && live < 280)}'
verdict $? "200 children: their sums"
new_pool 50 65536 0
out=$(on "pool=$work/pool" "$programs/forks" 2>&1); [ "$out" = fine ]; verdict $? "200 children, 50 slots"
summary "$work/pool" | awk -F'[= ]' 'NR == 1 {exit !($2 > 140 && $4 == 50)}'; verdict $? "the unserved are counted"
new_pool 1024 65536 2
out=$(on "pool=$work/pool" "$programs/forks" 2>&1)
[ "$out" = fine ] && summary "$work/pool" | grep -c '^pid' | grep -qx 1; verdict $? "children are not followed when asked"

new_pool 4 65536 0
on "pool=$work/pool" "$programs/tiny" && summary "$work/pool" | grep -q 'state=3 .*live_mib=[234] '
verdict $? "a tiny program: constructors to exit handlers"
on "pool=$work/pool" "$programs/tiny" x 2> "$work/errors"; [ $? = 134 ] && summary "$work/pool" | grep -q 'state=1 .*live_mib=[23] '
verdict $? "a program that aborts leaves its live heap"
for i in 1 2 3 4 5; do on "pool=$work/pool" "$programs/tiny" || break; done; verdict $? "a full pool stops nobody"

on "dir=$work,native,period=1K" "$programs/recursion" && summary "$work"/tidemark-*.pool | grep -q 'live_mib=3 '
verdict $? "deep native recursion"
rm -f "$work"/tidemark-*.pool
(ulimit -f 100; on "dir=$work" "$programs/tiny"); verdict $? "ulimit -f: runs unprofiled"
(ulimit -v 200000; on "dir=$work" "$programs/tiny"); verdict $? "ulimit -v: runs"
on "dir=/nonexistent" "$programs/tiny"; verdict $? "no such directory: runs"
on "pool=/dev/zero" "$programs/tiny"; verdict $? "a pool that is none: runs"
for order in "$library $programs/wrapper.so" "$programs/wrapper.so $library"; do
    new_pool 4 65536 0
    TIDEMARK=pool=$work/pool LD_PRELOAD=$order "$programs/tiny" && summary "$work/pool" | grep -q 'live_mib=3 .*limits=256'
    verdict $? "another preloaded allocator beside ours: $(basename "${order##* }") last"
done
# Other allocators: the agent sees malloc if they are loaded after it, and cannot if they are loaded before it.
beside() { # before or after, library, command...
    order="$library $2"; [ "$1" = before ] && order="$2 $library"
    shift 2
    TIDEMARK=pool=$work/pool LD_PRELOAD=$order "$@" 2>&1
}
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libtcmalloc.so.4 libmimalloc.so.2; do
    other=$(ldconfig -p | awk -v name="$name" '$1 == name && /x86-64/ {print $NF; exit}')
    if [ -z "$other" ] || [ ! -x "$programs/beside" ]; then skip "$name beside ours" "not installed, or no C++ compiler"; continue; fi
    new_pool 4 65536 0
    out=$(beside after "$other" "$programs/beside"); [ "$out" = fine ] && summary "$work/pool" |
        awk '/^pid/ {n++; live = substr($6, 10); bad = live < 250 || live > 270 || !/limits=256 / || !/torn=0/} END {exit n != 1 || bad}'
    verdict $? "$name after ours: malloc is counted, the limit is named"
    new_pool 4 65536 0
    out=$(beside before "$other" "$programs/beside"); [ "$out" = fine ] && summary "$work/pool" |
        awk '/^pid/ {n++; bad = !/ samples=[0-9][0-9]? / || !/limits=4096 /} END {exit n != 1 || bad}'
    verdict $? "$name before ours: nothing is made up, the limit is named"
    for order in after before; do
        new_pool 8 16384 1
        out=$(beside $order "$other" python3 -c 'import ctypes, json, sqlite3; kept = [bytes(n % 900) for n in range(50000)]; print("fine")')
        [ "$out" = fine ] && summary "$work/pool" | awk '/^pid/ && /torn=0/ {n++} END {exit n < 1}'
        verdict $? "$name $order ours: Python runs"
    done
done
new_pool 4 65536 2
on "pool=$work/pool" sh -c "exec $programs/tiny" && summary "$work/pool" | grep -q 'image=2 .*live_mib=[234] '
verdict $? "not following children, the first process is recorded through its execs"
on "off" "$programs/tiny"; verdict $? "off: runs"
LD_PRELOAD=$library "$programs/tiny"; verdict $? "no TIDEMARK: runs"
out=$(printf 'a\nb\n' | on "dir=$work" sh -c 'cat | sort -r; exit 7' 2>&1); [ $? = 7 ] && [ "$out" = "b
a" ]; verdict $? "a shell with a pipeline"

# ---- real interpreters, and the offset tables against the headers of those present ----
if command -v python3 > /dev/null; then
    python3 "$here/../layouts/generate.py" --check | tee -a "$results"
    for part in "Python in the agent:python_check.py" "late attach:late_check.py"; do
        python3 "$here/${part#*:}" "$library" "$build/layout" | tee -a "$results"
        made="${part%:*}: every check was made" # the last line; one that dies never gets there
        grep -q "$made" "$results" || fail "$made"
    done
else
    skip "Python in the agent" "no python3"
fi
}

"check_$part"
passed=$(grep '^ok' "$results" | grep -vc SKIP)
failed=$(grep -c '^not ok' "$results")
skipped=$(grep -c SKIP "$results")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
