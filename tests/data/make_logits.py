#!/usr/bin/env python3
"""Logits of a network of torchvision in float64, for warmlap to agree with.

Usage:  warmlap weights --export weights.safetensors --seed 1 --model MODEL
        make_logits.py MODEL weights.safetensors [OUTPUT] [--device cuda|cpu]
        make_logits.py MODEL weights.safetensors --compare [FILE]

Needs torch, torchvision, numpy and safetensors. Shares no code with warmlap: the weights come from
the exported file, loaded strictly; the input images are generated here by a second implementation
of the documented generator (src/base/rng.h, src/net/input.c), and so is every exported tensor by the
rules of src/net/synthetic.c, which must have the same bits.

With --compare nothing is written: FILE (the network's file beside this one), whoever made it, must
hold the same logits to within 1e-12 (relative L2, an image); exit status 1 where it does not.
"""
import argparse
import datetime
import math
import pathlib
import platform
import sys

import numpy as np
import safetensors.torch
import torch
import torchvision

SEED = 1
CASES = [(0, 224, 224), (1, 224, 224), (0, 64, 96)]  # image, height, width
SAME = 1e-12  # two programs in double

U32 = np.uint64(0xFFFFFFFF)
S32 = np.uint64(32)


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def philox(seed, stream, index):
    """Philox4x32-10; index is a uint64 array. Returns the four words as uint64 arrays."""
    x = [index & U32, index >> S32]
    x += [np.full_like(index, stream & 0xFFFFFFFF), np.full_like(index, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(p1 >> S32) ^ x[1] ^ np.uint64(k0), p1 & U32,
             (p0 >> S32) ^ x[3] ^ np.uint64(k1), p0 & U32]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return x


def uniform(seed, stream, index):
    x = philox(seed, stream, index)
    bits = ((x[1] << S32) | x[0]) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def log(x):
    """The generator's own logarithm, operation by operation."""
    m, e = np.frexp(x)
    small = m < 0.70710678118654752440
    m, e = np.where(small, m * 2.0, m), np.where(small, e - 1, e).astype(np.float64)
    t = (m - 1.0) / (m + 1.0)
    z = t * t
    total = np.zeros_like(t)
    for n in range(23, 2, -2):
        total = (total + 1.0 / n) * z
    low = 2.0 * (t * total) + e * 1.90821492927058770002e-10
    return e * 6.93147180369123816490e-01 + (2.0 * t + low)


# Wichura's AS 241, PPND16; lowest power first.
CENTRE = ([3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
           1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
           3.3430575583588128105e+4, 2.5090809287301226727e+3],
          [1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
           2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
           5.2264952788528545610e+3])
MIDDLE = ([1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
           3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
           2.27238449892691845833e-2, 7.74545014278341407640e-4],
          [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
           1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
           1.05075007164441684324e-9])
TAIL = ([6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
         2.71155556874348757815e-5, 2.01033439929228813265e-7],
        [1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
         2.04426310338993978564e-15])


def ratio(coefficients, x):
    values = []
    for side in coefficients:
        y = np.full_like(x, side[7])
        for c in side[6::-1]:
            y = y * x + c
        values.append(y)
    return values


def normal(seed, stream, index):
    p = uniform(seed, stream, index)
    q = p - 0.5
    num, den = ratio(CENTRE, 0.180625 - q * q)
    centre = q * num / den
    r = np.sqrt(-log(np.where(q < 0.0, p, 1.0 - p)))
    num, den = ratio(MIDDLE, r - 1.6)
    middle = num / den
    num, den = ratio(TAIL, r - 5.0)
    outer = np.where(r <= 5.0, middle, num / den)
    return np.where(np.abs(q) <= 0.425, centre, np.where(q < 0.0, -outer, outer))


def image(seed, number, height, width):
    noise = (fnv1a("input") + number) % 2**64
    cast = (fnv1a("input.cast") + number) % 2**64
    j = np.arange(3 * height * width, dtype=np.uint64)
    offset = math.sqrt(0.75) * normal(seed, cast, np.arange(3, dtype=np.uint64))
    values = 0.5 * normal(seed, noise, j) + np.repeat(offset, height * width)
    return values.astype(np.float32).reshape(1, 3, height, width)


def roles(model):
    """What the tensors of a state dict are: {name: (role, whether its rule is the second one)}."""
    found = {}
    modules = dict(model.named_modules())
    for name, module in modules.items():
        if isinstance(module, torch.nn.BatchNorm2d):
            for leaf, role in (("weight", "scale"), ("bias", "shift"), ("running_mean", "mean"),
                               ("running_var", "variance"), ("num_batches_tracked", "counter")):
                found[f"{name}.{leaf}"] = (role, role == "scale" and before_sum(modules, name))
        elif isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            kind = "linear" if isinstance(module, torch.nn.Linear) else "conv"
            found[f"{name}.weight"] = (kind, kind == "conv" and behind_gate(modules, name))
            if module.bias is not None:
                found[f"{name}.bias"] = ("bias", False)
    return found


def before_sum(modules, name):
    """The last batch norm of a block that adds its input."""
    blocks = [n for n in modules if name.startswith(n + ".") and
              (hasattr(modules[n], "downsample") or hasattr(modules[n], "use_res_connect"))]
    if not blocks or ".downsample." in name:
        return False
    block = modules[blocks[-1]]
    last = [n for n, m in block.named_modules() if isinstance(m, torch.nn.BatchNorm2d) and
            "downsample" not in n][-1]
    return name == f"{blocks[-1]}.{last}" and getattr(block, "use_res_connect", True)


def behind_gate(modules, name):
    """The convolution behind a squeeze and excitation: its place in the block is the next."""
    parts = name.split(".")
    if len(parts) < 3 or not parts[-2].isdigit():
        return False
    before = ".".join(parts[:-2] + [str(int(parts[-2]) - 1)])
    return isinstance(modules.get(before), torchvision.ops.SqueezeExcitation)


def check_weights(state, model):
    """Every tensor by its rule, bit for bit."""
    for name, (role, second) in roles(model).items():
        tensor = state[name]
        index = np.arange(tensor.numel(), dtype=np.uint64)
        fan_in = tensor[0].numel() if tensor.dim() > 1 else 0
        if role in ("scale", "variance"):
            low, width = (0.2, 0.2) if second else (0.8, 0.4)
            values = low + width * uniform(SEED, fnv1a(name), index)
        elif role == "counter":
            values = np.zeros(1)
        else:
            scale = {"conv": math.sqrt((6.0 if second else 2.0) / fan_in) if fan_in else 0,
                     "linear": math.sqrt(1.0 / fan_in) if fan_in else 0,
                     "bias": 0.01}.get(role, 0.1)
            values = normal(SEED, fnv1a(name), index) * scale
        want = values.astype(np.float32).reshape(tensor.shape)
        assert np.array_equal(tensor.numpy(), want), f"{name} differs from its definition"


def read(path):
    """{(image, height, width): logits} of a file of logits."""
    found, lines = {}, iter(pathlib.Path(path).read_text(encoding="ascii").splitlines())
    for line in lines:
        if line.startswith("image "):
            number, height, width, count = map(int, line.split()[1:])
            found[number, height, width] = np.array([float(next(lines)) for _ in range(count)])
    return found


def compare(path, results):
    """The largest relative L2 between the results and the file's; images must be the same."""
    held = read(path)
    assert held.keys() == results.keys(), f"{path}: other images: {sorted(held)}"
    worst = 0.0
    for case, logits in results.items():
        error = np.linalg.norm(held[case] - logits) / np.linalg.norm(logits)
        print(f"image {case[0]} {case[1]}x{case[2]}: relative L2 {error:.3g}")
        worst = max(worst, error) if error == error else math.inf
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="torchvision's name")
    parser.add_argument("weights")
    parser.add_argument("output", nargs="?")
    parser.add_argument("--compare", nargs="?", const="", help="a file to compare with")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    beside = pathlib.Path(__file__).with_name(f"logits_{args.model}_synthetic1.txt")

    state = safetensors.torch.load_file(args.weights)
    model = getattr(torchvision.models, args.model)(weights=None)
    check_weights(state, model)
    model.load_state_dict(state, strict=True)
    model = model.double().eval().to(args.device)
    where = torch.cuda.get_device_name() if args.device.startswith("cuda") else platform.machine()
    versions = (f"float64, on {args.device} ({where}); torch {torch.__version__}, torchvision "
                f"{torchvision.__version__}, numpy {np.__version__}")
    results = {}
    for number, height, width in CASES:
        x = torch.from_numpy(image(SEED, number, height, width)).double().to(args.device)
        with torch.no_grad():
            results[number, height, width] = model(x)[0].cpu().numpy()
    if args.compare is not None:
        path = args.compare or beside
        print(f"torchvision {args.model}, {versions}, against {pathlib.Path(path).name}")
        sys.exit(not compare(path, results) <= SAME)
    with open(args.output or beside, "w", encoding="ascii") as out:
        print(f"# torchvision {args.model}, {versions}; {datetime.date.today()}; made by "
              "make_logits.py", file=out)
        for (number, height, width), logits in results.items():
            print(f"image {number} {height} {width} {len(logits)}", file=out)
            for value in logits:
                print(f"{value:.17g}", file=out)


if __name__ == "__main__":
    main()
