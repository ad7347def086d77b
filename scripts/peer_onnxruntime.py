#!/usr/bin/env python3
"""Times ResNet-18, -34, -50 or EfficientNet-B0 with ONNX Runtime on the CPU, for the table beside warmlap's.

The network is written as an ONNX file here (batch-norm folded, random weights), so neither the onnx
package nor PyTorch is needed. fp32; every pass is waited for and timed by the host's clock.
Prints a line of JSON for each batch: version, model, threads, batch, median_ms, least_ms.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

try:
    import numpy
    import onnxruntime
except ImportError as missing:
    sys.exit("%s is missing: pip install onnxruntime" % missing.name)

# ---- the ONNX file: protocol buffer messages by field number ------------------------------------


def number(value):
    """A base-128 number, least significant group first."""
    groups = []
    while value > 127:
        groups.append(value % 128 + 128)
        value //= 128
    return bytes(groups + [value])


def field(tag, value):
    """One field: whole numbers as such, everything else with its length."""
    if isinstance(value, int):
        return number(8 * tag) + number(value)
    if isinstance(value, str):
        value = value.encode()
    return number(8 * tag + 2) + number(len(value)) + value


def message(*fields):
    return b"".join(field(tag, value) for tag, value in fields)


FLOAT, INT, INTS = 1, 2, 7


def attribute(name, value):
    if isinstance(value, int):
        return message((1, name), (3, value), (20, INT))
    return message((1, name), *[(8, v) for v in value], (20, INTS))


def tensor_type(name, shape):
    dimensions = message(*[(1, message((1, size))) for size in shape])
    return message((1, name), (2, message((1, message((1, FLOAT), (2, dimensions))))))


class Graph:
    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(seed)

    def weight(self, *shape):
        name = "w%d" % len(self.weights)
        inputs = max(1, int(numpy.prod(shape[1:])))
        values = self.random.standard_normal(shape, dtype=numpy.float32) * (2.0 / inputs) ** 0.5
        if len(shape) == 1:
            values = values * 0.01
        self.weights.append(message(*[(1, size) for size in shape], (2, FLOAT), (8, name),
                                    (9, values.astype("<f4").tobytes())))
        return name

    def node(self, kind, *inputs, **attributes):
        name = "%s%d" % (kind.lower(), len(self.nodes))
        self.nodes.append(message(*[(1, i) for i in inputs], (2, name), (3, name), (4, kind),
                                  *[(5, attribute(k, v)) for k, v in attributes.items()]))
        return name

    def conv(self, x, inputs, outputs, window, stride, group=1):
        return self.node("Conv", x, self.weight(outputs, inputs // group, window, window),
                         self.weight(outputs), kernel_shape=[window] * 2, strides=[stride] * 2,
                         pads=[window // 2] * 4, group=group)

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def classifier(self, x, inputs):
        x = self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)
        return self.node("Gemm", x, self.weight(1000, inputs), self.weight(1000), transB=1)

    def file(self, batch, height, width, output):
        graph = message(*[(1, n) for n in self.nodes], (2, "peer"),
                        *[(5, w) for w in self.weights],
                        (11, tensor_type("image", (batch, 3, height, width))),
                        (12, tensor_type(output, (batch, 1000))))
        opset = message((1, ""), (2, 13))
        return message((1, 8), (2, "warmlap"), (7, graph), (8, opset))


def resnet(g, blocks, bottleneck):
    x = g.node("Relu", g.conv("image", 3, 64, 7, 2))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for width, count in zip((64, 128, 256, 512), blocks):
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if block == 0 and width > 64 else 1
            shortcut = g.conv(x, inputs, outputs, 1, stride) if inputs != outputs else x
            if bottleneck:
                y = g.node("Relu", g.conv(x, inputs, width, 1, 1))
                y = g.node("Relu", g.conv(y, width, width, 3, stride))
                y = g.conv(y, width, outputs, 1, 1)
            else:
                y = g.node("Relu", g.conv(x, inputs, width, 3, stride))
                y = g.conv(y, width, outputs, 3, 1)
            x = g.node("Relu", g.node("Add", y, shortcut))
            inputs = outputs
    return g.classifier(x, inputs)


# Expansion, window, step, outputs, blocks of each stage.
STAGES = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
          (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))


def efficientnet_b0(g):
    x = g.silu(g.conv("image", 3, 32, 3, 2))
    inputs = 32
    for expansion, window, step, outputs, count in STAGES:
        for block in range(count):
            wide, stride = inputs * expansion, step if block == 0 else 1
            y = g.silu(g.conv(x, inputs, wide, 1, 1)) if expansion > 1 else x
            y = g.silu(g.conv(y, wide, wide, window, stride, wide))
            gate = g.silu(g.conv(g.node("GlobalAveragePool", y), wide, inputs // 4, 1, 1))
            y = g.node("Mul", y, g.node("Sigmoid", g.conv(gate, inputs // 4, wide, 1, 1)))
            y = g.conv(y, wide, outputs, 1, 1)
            x = g.node("Add", y, x) if stride == 1 and inputs == outputs else y
            inputs = outputs
    return g.classifier(g.silu(g.conv(x, inputs, 1280, 1, 1)), 1280)


MODELS = {"resnet18": lambda g: resnet(g, (2, 2, 2, 2), False),
          "resnet34": lambda g: resnet(g, (3, 4, 6, 3), False),
          "resnet50": lambda g: resnet(g, (3, 4, 6, 3), True),
          "efficientnet_b0": efficientnet_b0}


# ---- timing -------------------------------------------------------------------------------------


def measure(batch, args):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "peer.onnx")
        graph = Graph(1)
        output = MODELS[args.model](graph)
        with open(path, "wb") as out:
            out.write(graph.file(batch, args.height, args.width, output))
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    shape = (batch, 3, args.height, args.width)
    image = {"image": numpy.random.default_rng(2).standard_normal(shape, dtype=numpy.float32)}
    samples = []
    for i in range(args.warmup + args.repetitions):
        start = time.perf_counter()
        session.run(None, image)
        if i >= args.warmup:
            samples.append(1000 * (time.perf_counter() - start))
    return {"peer": "ONNX Runtime " + onnxruntime.__version__, "model": args.model,
            "threads": args.threads, "batch": batch, "median_ms": statistics.median(samples), "least_ms": min(samples)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet18")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", default="1,16", help="comma-separated")
    parser.add_argument("--height", type=int, default=224)
    parser.add_argument("--width", type=int, default=224)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=30)
    args = parser.parse_args()
    for batch in args.batch.split(","):
        print(json.dumps(measure(int(batch), args)), flush=True)


if __name__ == "__main__":
    main()
