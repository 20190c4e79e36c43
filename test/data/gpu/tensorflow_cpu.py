"""Creates tensorflow_cpu.log: TensorFlow's own allocator runs out of memory, on a CPU.

    pip install tensorflow-cpu==2.21.0
    python tensorflow_cpu.py 2> tensorflow_cpu.log
"""

import os

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "256"

import tensorflow as tf

kept = []
while True:
    kept.append(tf.random.uniform((1024, 1024, 4)))
