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
import os
import queue
import statistics
import sys

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


def cases_of(args):
    shapes = [(int(b), 224, 224) for b in args.batch.split(",")]
    if args.wide:
        shapes.append((1, 1024, 2048))
    return [(precision, shape) for precision in args.precision.split(",") for shape in shapes]


class Case:
    """One network, precision and shape: made and compiled first, timed later."""

    def __init__(self, args, precision, shape):
        self.precision, self.shape, self.model = precision, shape, args.model
        torch.backends.cudnn.benchmark = True
        if not args.no_compile:
            torch._inductor.config.freezing = True
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
        self.tf32 = precision != "fp32"
        self.set_tf32()
        layout = torch.channels_last if self.tf32 else torch.contiguous_format
        plain = getattr(torchvision.models, args.model)(weights=None).eval()
        self.folded = fuse(plain).cuda().to(dtype).to(memory_format=layout)
        self.plain = plain.cuda().to(dtype).to(memory_format=layout)
        batch, height, width = shape
        self.x = torch.randn(batch, 3, height, width, device="cuda", dtype=dtype).to(memory_format=layout)
        self.compiled = None
        if not args.no_compile:
            try:
                with torch.no_grad():  # inference mode keeps weights from being frozen
                    self.compiled = compiled(self.plain, self.x)
            except Exception as error:  # no compiler for its code, say: the others stand
                print(f"torch.compile: {type(error).__name__}: {str(error)[:200]}", flush=True)

    def set_tf32(self):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = self.tf32

    def time(self):
        self.set_tf32()
        times = {}
        with torch.inference_mode():
            times["eager"] = median_ms(lambda: self.plain(self.x), 30, 100)
            with torch.no_grad():
                times["graph"] = median_ms(graph_of(self.folded, self.x), 30, 100)
        if self.compiled:
            with torch.no_grad():
                times["compiled"] = median_ms(self.compiled, 30, 100)
        best = min(times, key=times.get)
        batch, height, width = self.shape
        row = {"model": self.model, "precision": self.precision, "batch": batch, "height": height, "width": width,
               "best": best, "median_ms": times[best], "images_per_s": 1000 * batch / times[best],
               "eager_ms": times["eager"], "graph_ms": times["graph"], "compiled_ms": times.get("compiled")}
        print("PyTorch {precision:5s} batch {batch:4d} {height}x{width}: {median_ms:8.4f} ms, "
              "{images_per_s:9.1f} images/s ({best}; eager {eager_ms:.4f} ms)".format(**row), flush=True)
        return row


def worker(args, precision, shape, places, go, turn, said):
    """A process for one case: compiles beside others, times alone. Says "made", and then its row."""
    with places:
        case = Case(args, precision, shape)
    said.put("made")
    go.wait()
    with turn:
        said.put(case.time())


def beside_each_other(args, cases, jobs):
    context = torch.multiprocessing.get_context("spawn")
    places, turn, go, said = context.Semaphore(jobs), context.Lock(), context.Event(), context.Queue()
    processes = [context.Process(target=worker, args=(args, *case, places, go, turn, said)) for case in cases]
    for process in processes:
        process.start()
    made, rows = 0, []
    while True:
        alive = sum(process.is_alive() for process in processes)
        if made >= alive:  # those that died do not hold up the others
            go.set()
        try:
            word = said.get(timeout=1)
        except queue.Empty:
            if alive == 0:
                break
            continue
        if word == "made":
            made += 1
        else:
            rows.append(word)
    order = {case: i for i, case in enumerate(cases)}
    return sorted(rows, key=lambda r: order[r["precision"], (r["batch"], r["height"], r["width"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet18", help="torchvision's name: efficientnet_b0")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--precision", default="fp32", help="comma-separated: fp32,tf32,fp16,bf16")
    parser.add_argument("--batch", default="1,8,64,256")
    parser.add_argument("--wide", action="store_true", help="also 1x3x1024x2048")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: faster, not the best")
    parser.add_argument("--jobs", default="1", help="shapes that are compiled at the same time, each in a process "
                        "(timing is always one after the other); auto: by cores and the card's memory")
    args = parser.parse_args()
    cases = cases_of(args)
    if args.jobs == "auto":
        memory = torch.cuda.get_device_properties(0).total_memory
        jobs = max(1, min((os.cpu_count() or 2) // 2, memory // (8 << 30)))
    else:
        jobs = int(args.jobs)
    if jobs > 1 and len(cases) > 1:
        rows = beside_each_other(args, cases, jobs)
    else:
        rows = [Case(args, *case).time() for case in cases]
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                       "device": torch.cuda.get_device_name(0), "rows": rows}, out, indent=1)
    if len(rows) < len(cases):
        sys.exit(f"peer_pytorch.py: {len(cases) - len(rows)} of {len(cases)} cases could not be timed")


if __name__ == "__main__":
    main()
