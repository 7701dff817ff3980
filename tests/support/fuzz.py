"""Curves, polygons and proofs of random networks against rational arithmetic: right, refused with a reason, or wrong.

    python tests/support/fuzz.py                     # 40,000 curves, 12,000 partitions, 10,000 proofs, 1,000 programs
    python tests/support/fuzz.py --curves 1000 --polygons 0 --proofs 0 --seed 7
    python tests/support/fuzz.py --curve 1663        # one network, again; also --polygon, --proof and --program

What is right is in `judges`, `proof_judges` and `program_judges`.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter

from judges import JUDGES, verdict
from program_judges import judge_program
from proof_judges import judge_proofs, judge_slopes

JUDGES.update(values=judge_proofs, slopes=judge_slopes, programs=judge_program)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=int, default=40_000)
    parser.add_argument("--polygons", type=int, default=12_000)
    parser.add_argument("--proofs", type=int, default=10_000)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--curve", type=int, help="judge one curve, the one with this seed")
    parser.add_argument("--polygon", type=int, help="judge the polygons of one network, the one with this seed")
    parser.add_argument("--proof", type=int, help="judge the proofs about one network, the one with this seed")
    parser.add_argument("--program", type=int, help="judge the proofs about one program, the one with this seed")
    chosen = parser.parse_args()
    asked = {"curve": chosen.curve, "polygons": chosen.polygon, "values": chosen.proof, "slopes": chosen.proof}
    asked["programs"] = chosen.program
    for kind, seed in asked.items():
        if seed is not None:
            print(f"{kind} {seed}: {JUDGES[kind](seed)}")
    if any(seed is not None for seed in asked.values()):
        return
    tasks = [("curve", chosen.seed + i) for i in range(chosen.curves)]
    tasks += [("polygons", chosen.seed + i) for i in range(chosen.polygons)]
    tasks += [("slopes" if i % 5 > 3 else "values", chosen.seed + i) for i in range(chosen.proofs)]
    tasks += [("programs", chosen.seed + i) for i in range(chosen.programs)]
    sys.exit(report(tasks, chosen.processes))


def report(tasks, processes):
    """Judge the networks, print counts and what is wrong; return 1 if anything is."""
    start, counts, refused = time.perf_counter(), Counter(), Counter()
    with multiprocessing.Pool(processes) as pool:
        for done, ((kind, seed), text) in enumerate(pool.imap_unordered(verdict, tasks, 50), 1):
            outcome, _, reason = text.partition(": ")
            counts[kind, seed % 2, outcome] += 1
            if outcome == "refused":
                refused["pieces are too short" if "too short" in reason else reason] += 1
            if outcome == "wrong":
                print(f"{kind} {seed}: {text}", flush=True)
            if done % 5000 == 0:
                print(f"... {done:,} of {len(tasks):,}, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{'networks':24} {'right':>8} {'refused':>8} {'wrong':>8}")
    for kind in JUDGES:
        for wild, name in enumerate(("ordinary", "wild scales")):
            row = [counts[kind, wild, outcome] for outcome in ("right", "refused", "wrong")]
            print(f"{f'{kind}, {name}':24} {row[0]:>8,} {row[1]:>8,} {row[2]:>8,}")
    print(f"refused: {dict(refused)}; {time.perf_counter() - start:.0f} s")
    return int(any(outcome == "wrong" for _, _, outcome in counts))


if __name__ == "__main__":
    main()
