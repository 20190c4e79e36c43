#!/bin/sh
# Writes the samples of this folder that current tools write (README.md has the versions):
#   sh samples.sh PYTHON_WITH_PACKAGES PYTHON_WITH_TORCH
# The interpreters are those of test/requirements.txt and test/requirements-torch.txt. Valgrind, heaptrack, cc and Go
# are on PATH. The programs run in a folder of their own, whose name is in the samples.
set -eu
python=$1
torch=$2
bin=$(dirname "$python")
data=$(cd "$(dirname "$0")" && pwd)
programs=$data/../../programs
work=/srv/samples
mkdir -p "$work"
cd "$work"
cp "$data/sampled.py" "$programs/imported.c" "$programs/torch_traced.py" "$programs/held.go" .

cat > traced.py <<'PYTHON'
import runpy, tracemalloc
tracemalloc.start(8)
runpy.run_path("sampled.py")
tracemalloc.take_snapshot().dump("tracemalloc.pickle")
PYTHON
"$python" traced.py
"$python" -m memray run -f -o memray-13.bin sampled.py
"$python" -m memray run -f --aggregate -o memray-aggregated.bin sampled.py
"$python" -m memray run -f --trace-python-allocators -o memray-python.bin sampled.py
"$python" -m memray transform speedscope -f -o memray.speedscope.json memray-13.bin
sed 's/^def /@profile\ndef /' sampled.py > marked.py
"$bin/mprof" run -o mprofile.dat marked.py
"$python" -m scalene run -o scalene.json sampled.py
"$bin/py-spy" record --format raw -o py-spy.raw -- "$python" sampled.py
cat > graph.py <<'PYTHON'
import objgraph
class Session: pass
history = [{"session": Session()}]
objgraph.show_backrefs([history[0]["session"]], max_depth=5, filename="objgraph.dot")
PYTHON
"$python" graph.py
cc -g -O0 -fno-builtin -o imported imported.c
valgrind --tool=massif --time-unit=ms --detailed-freq=1 --massif-out-file=massif.out ./imported
valgrind --leak-check=full --show-leak-kinds=all --xml=yes --xml-file=memcheck.xml ./imported
valgrind --tool=dhat --dhat-out-file=dhat.out ./imported
valgrind --tool=dhat --mode=copy --dhat-out-file=dhat-copy.out ./imported
heaptrack -o heaptrack ./imported
"$torch" torch_traced.py .
"$torch" - <<'PYTHON'
import jax, jax.numpy as jnp
held = jnp.ones((512, 512)).block_until_ready()
jax.profiler.save_device_memory_profile("jax.pb.gz")
PYTHON
mv trace.json torch_trace.json
mv timeline.json torch_timeline.json
mv timeline.raw.json.gz torch_timeline.raw.json.gz
GOCACHE=$work/cache go run held.go go.pb.gz
gzip -9nf memray.speedscope.json scalene.json torch_trace.json torch_timeline.json tracemalloc.pickle
chmod 644 ./*.out
cp ./*.pickle.gz ./*.bin ./*.json.gz ./*.pb.gz ./*.zst ./*.dat ./*.raw ./*.dot ./*.xml massif.out dhat.out dhat-copy.out "$data"
rm -rf "$work"
