#!/usr/bin/env python3
"""Logits of a network in float64 with NumPy alone, for warmlap to agree with.

Usage:  warmlap weights --export weights.safetensors --seed 1 [--model NAME]
        make_logits_numpy.py MODEL weights.safetensors [OUTPUT]

A second implementation of the networks, written from torchvision's definition of their modules and
parameter names; it shares no code with warmlap. Weights come from the exported file, every one of which
must be used, batch norms are applied as they are, not folded. The images are those of make_logits.py, by
the same generator. For resnet18 its result is also compared with what PyTorch gave
(logits_resnet18_synthetic1.txt), which shows that its layers are right.
"""
import argparse
import ast
import datetime
import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
SEED = 1
CASES = {"resnet18": [(0, 64, 96)], "efficientnet_b0": [(0, 224, 224), (1, 224, 224), (0, 64, 96)]}


def generator():
    """The image generator of make_logits.py, without what that imports."""
    tree = ast.parse((HERE / "make_logits.py").read_text())
    wanted = [n for n in tree.body if isinstance(n, ast.FunctionDef) and
              n.name in ("fnv1a", "philox", "uniform", "log", "ratio", "normal", "image")]
    wanted += [n for n in tree.body if isinstance(n, ast.Assign)]
    names = {"np": np, "math": __import__("math")}
    exec(compile(ast.Module(sorted(wanted, key=lambda n: n.lineno), []), "make_logits.py", "exec"), names)
    return names["image"]


def load(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    state = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + begin:8 + size + end], "<f4")
        state[name] = values.reshape(entry["shape"]).astype(np.float64)
    return state


class Weights:
    def __init__(self, state):
        self.state, self.used = state, set()

    def __call__(self, name):
        self.used.add(name)
        return self.state[name]


def windows(x, window, stride, pad, fill=0.0):
    """[window * window][c][p][q]: what lies under each tap."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    p, q = ((n - window) // stride + 1 for n in x.shape[1:])
    return np.stack([x[:, r:r + (p - 1) * stride + 1:stride, s:s + (q - 1) * stride + 1:stride]
                     for r in range(window) for s in range(window)])


def conv(w, name, x, stride=1, pad=0):
    weight = w(name + ".weight")
    taps = windows(x, weight.shape[2], stride, pad)
    flat = weight.reshape(*weight.shape[:2], -1)
    if weight.shape[1] == 1 and x.shape[0] == weight.shape[0] > 1:
        return np.einsum("kt,tkpq->kpq", flat[:, 0], taps)
    matrix = flat.transpose(0, 2, 1).reshape(weight.shape[0], -1)
    return (matrix @ taps.reshape(matrix.shape[1], -1)).reshape(-1, *taps.shape[2:])


def norm(w, name, x):
    scale = w(name + ".weight") / np.sqrt(w(name + ".running_var") + 1e-5)
    return (x - w(name + ".running_mean")[:, None, None]) * scale[:, None, None] + \
        w(name + ".bias")[:, None, None]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def relu(x):
    return np.maximum(x, 0)


def linear(w, name, x):
    return w(name + ".weight") @ x.mean((1, 2)) + w(name + ".bias")


def resnet18(w, x):
    x = relu(norm(w, "bn1", conv(w, "conv1", x, 2, 3)))
    x = windows(x, 3, 2, 1, -np.inf).max(0)
    for layer in range(1, 5):
        for block in range(2):
            p, stride = f"layer{layer}.{block}.", 2 if block == 0 and layer > 1 else 1
            y = relu(norm(w, p + "bn1", conv(w, p + "conv1", x, stride, 1)))
            y = norm(w, p + "bn2", conv(w, p + "conv2", y, 1, 1))
            if stride == 2:
                x = norm(w, p + "downsample.1", conv(w, p + "downsample.0", x, 2))
            x = relu(x + y)
    return linear(w, "fc", x)


def squeeze(w, name, x):
    """torchvision.ops.SqueezeExcitation, SiLU and sigmoid."""
    y = x.mean((1, 2), keepdims=True)
    y = silu(conv(w, name + ".fc1", y) + w(name + ".fc1.bias")[:, None, None])
    return x * sigmoid(conv(w, name + ".fc2", y) + w(name + ".fc2.bias")[:, None, None])


def efficientnet_b0(w, x):
    """torchvision's inverted_residual_setting: expansion, window, step, outputs, blocks."""
    settings = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
                (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))
    x = silu(norm(w, "features.0.1", conv(w, "features.0.0", x, 2, 1)))
    for stage, (expansion, window, step, outputs, count) in enumerate(settings, 1):
        for block in range(count):
            layer, stride, y = 0, step if block == 0 else 1, x
            name = f"features.{stage}.{block}.block."
            if expansion != 1:
                y = silu(norm(w, f"{name}0.1", conv(w, f"{name}0.0", y)))
                layer = 1
            y = conv(w, f"{name}{layer}.0", y, stride, window // 2)
            y = squeeze(w, f"{name}{layer + 1}", silu(norm(w, f"{name}{layer}.1", y)))
            y = norm(w, f"{name}{layer + 2}.1", conv(w, f"{name}{layer + 2}.0", y))
            assert y.shape[0] == outputs
            x = x + y if stride == 1 and x.shape == y.shape else y
    x = silu(norm(w, "features.8.1", conv(w, "features.8.0", x)))
    return linear(w, "classifier.1", x)


def known(number, height, width):
    """PyTorch's logits of that image, from the file beside this one."""
    lines = (HERE / "logits_resnet18_synthetic1.txt").read_text().splitlines()
    at = lines.index(f"image {number} {height} {width} 1000")
    return np.array([float(v) for v in lines[at + 1:at + 1001]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(CASES))
    parser.add_argument("weights")
    parser.add_argument("output", nargs="?")
    args = parser.parse_args()
    path = args.output or HERE / f"logits_{args.model}_synthetic1.txt"
    image, w = generator(), Weights(load(args.weights))
    results = []
    for number, height, width in CASES[args.model]:
        x = image(SEED, number, height, width)[0].astype(np.float64)
        results.append((number, height, width, globals()[args.model](w, x)))
        print(f"image {number} {height}x{width}: logits {results[-1][3][:3]}", file=sys.stderr)
    unused = set(w.state) - w.used
    assert not unused, f"unused weights: {sorted(unused)[:5]}"
    if args.model == "resnet18":
        for number, height, width, logits in results:
            want = known(number, height, width)
            error = np.linalg.norm(logits - want) / np.linalg.norm(want)
            print(f"against PyTorch: relative L2 {error:.3g}")
            assert error < 1e-12
        return
    with open(path, "w", encoding="ascii") as out:
        print(f"# {args.model} as torchvision defines it, float64; numpy {np.__version__}; "
              f"{datetime.date.today()}; made by make_logits_numpy.py", file=out)
        for number, height, width, logits in results:
            print(f"image {number} {height} {width} {len(logits)}", file=out)
            for value in logits:
                print(f"{value:.17g}", file=out)


if __name__ == "__main__":
    main()
