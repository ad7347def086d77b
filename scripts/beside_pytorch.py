#!/usr/bin/env python3
"""Puts warmlap's rows beside PyTorch's: one line for each network, size, precision and batch that both timed.

Usage: beside_pytorch.py PYTORCH.json WARMLAP.json... (the first is scripts/peer_pytorch.py's output, of the same run)
Times are medians of device spans with inputs resident; a ratio above 1 means that warmlap is faster.
Exit status: 0; 1 where nothing is in both, or a file cannot be read.
"""
import json
import sys


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"beside_pytorch.py: {path}: {error}")


def peer_rows(document):
    return {
        (row.get("model", "resnet18"), row["height"], row["width"], row["precision"], row["batch"]): row
        for row in document["rows"]
        if row.get("median_ms")
    }


def our_rows(paths):
    """Median milliseconds by case and backend: of GPUs, and only of rows that are ok and verified."""
    found = {}
    for path in paths:
        for row in read(path)["rows"]:
            latency = row.get("latency")
            if not row["verified"].get("passed"):
                continue
            if row["status"] != "ok" or not latency or row["device"]["type"] != "gpu":
                continue
            case = (row["network"], row["height"], row["width"], row["precision"], row["batch"])
            found.setdefault(case, {})[row["backend"]] = latency["p50_s"] * 1e3
    return found


def cell(ms, peer, batch):
    if ms is None:
        return "- | - | -"
    return f"{ms:.3f} | {1e3 * batch / ms:,.0f} | {peer / ms:.2f}"


def main():
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if "-h" in sys.argv[1:2] or "--help" in sys.argv[1:2] else 1)
    document = read(sys.argv[1])
    peers, ours = peer_rows(document), our_rows(sys.argv[2:])
    both = [case for case in ours if case in peers]
    if not both:
        sys.exit("beside_pytorch.py: no case is in both")
    print(f"{document['device']}; PyTorch {document['torch']}, cuDNN {document['cudnn']}; ms and images/s, "
          "ratios are PyTorch's time over warmlap's\n")
    print("| network | size | precision | batch | PyTorch (best form) | | CUDA | | ratio | OpenCL | | ratio |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for case in sorted(both, key=lambda c: (c[0], c[1], c[3], c[4])):
        model, height, width, precision, batch = case
        peer = peers[case]
        ms = peer["median_ms"]
        print(f"| {model} | {height}x{width} | {precision} | {batch} | {ms:.3f} ({peer['best']}) | "
              f"{1e3 * batch / ms:,.0f} | {cell(ours[case].get('cuda'), ms, batch)} | "
              f"{cell(ours[case].get('opencl'), ms, batch)} |")


if __name__ == "__main__":
    main()
