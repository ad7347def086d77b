#!/usr/bin/env python3
"""Times a network of torchvision (ResNet-18) on an NVIDIA GPU, for the table beside warmlap's.

Random weights, inference mode, input resident. Each timed pass stands between two CUDA events and is
waited for; the median of the passes is printed. Three ways of running are timed and the best is what to
compare with: eager, a CUDA graph of the network with batch-norm folded, and torch.compile with frozen
weights and CUDA graphs (the strongest at large batches; it compiles for some seconds a shape).
fp32 is strict (TF32 off), channels first; the other precisions use channels_last.
"""
import argparse
import json
import statistics

import torch
import torch._inductor.config
import torchvision
from torch.fx.experimental.optimization import fuse


def median_ms(run, warmup, passes):
    for _ in range(warmup):
        run()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    samples = []
    for _ in range(passes):
        begin.record()
        run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end))
    return statistics.median(samples)


def graph_of(net, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            net(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(x)
    return graph.replay


def compiled(net, x):
    """The compiler's own graph of one shape; the first calls compile and capture it."""
    torch._dynamo.reset()
    run = torch.compile(net, mode="reduce-overhead")
    for _ in range(3):
        run(x)
    torch.cuda.synchronize()
    return lambda: run(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet18", help="torchvision's name: efficientnet_b0")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--precision", default="fp32", help="comma-separated: fp32,tf32,fp16,bf16")
    parser.add_argument("--batch", default="1,8,64,256")
    parser.add_argument("--wide", action="store_true", help="also 1x3x1024x2048")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: faster, not the best")
    args = parser.parse_args()
    shapes = [(int(b), 224, 224) for b in args.batch.split(",")]
    if args.wide:
        shapes.append((1, 1024, 2048))
    torch.backends.cudnn.benchmark = True
    if not args.no_compile:
        torch._inductor.config.freezing = True
    rows = []
    for precision in args.precision.split(","):
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
        tf32 = precision != "fp32"
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        layout = torch.channels_last if tf32 else torch.contiguous_format
        plain = getattr(torchvision.models, args.model)(weights=None).eval()
        folded = fuse(plain).cuda().to(dtype).to(memory_format=layout)
        plain = plain.cuda().to(dtype).to(memory_format=layout)
        for batch, height, width in shapes:
            x = torch.randn(batch, 3, height, width, device="cuda", dtype=dtype)
            x = x.to(memory_format=layout)
            with torch.inference_mode():
                times = {"eager": median_ms(lambda: plain(x), 30, 100)}
                with torch.no_grad():
                    times["graph"] = median_ms(graph_of(folded, x), 30, 100)
            if not args.no_compile:
                try:
                    with torch.no_grad():  # inference mode keeps weights from being frozen
                        times["compiled"] = median_ms(compiled(plain, x), 30, 100)
                except Exception as error:  # no compiler for its code, say: the others stand
                    print(f"torch.compile: {type(error).__name__}: {str(error)[:200]}", flush=True)
            mode = min(times, key=times.get)
            row = {"model": args.model, "precision": precision, "batch": batch, "height": height, "width": width,
                   "best": mode, "median_ms": times[mode],
                   "images_per_s": 1000 * batch / times[mode], "eager_ms": times["eager"],
                   "graph_ms": times["graph"], "compiled_ms": times.get("compiled")}
            rows.append(row)
            print("PyTorch {precision:5s} batch {batch:4d} {height}x{width}: {median_ms:8.4f} ms, "
                  "{images_per_s:9.1f} images/s ({best}; eager {eager_ms:.4f} ms)".format(**row),
                  flush=True)
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                       "device": torch.cuda.get_device_name(0), "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
