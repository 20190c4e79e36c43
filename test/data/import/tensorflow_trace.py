"""Wrote tensorflow.xplane.pb with TensorFlow 2.21 on a CPU: `TF_CPU_ALLOCATOR_USE_BFC=1 python tensorflow_trace.py FOLDER`."""

import sys

import tensorflow as tf

Dense = tf.keras.layers.Dense
model = tf.keras.Sequential([tf.keras.layers.Input((512,)), Dense(1024, activation="relu"), Dense(1024, activation="relu"), Dense(10)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        outputs = model(images, training=True)
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, outputs, from_logits=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


images, labels = tf.random.normal((256, 512)), tf.zeros((256,), tf.int32)
step(images, labels)
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
tf.profiler.experimental.start(sys.argv[1], options=options)
for number in range(2):
    with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
        step(images, labels)
tf.profiler.experimental.stop()
