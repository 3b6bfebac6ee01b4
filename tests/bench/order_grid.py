#!/usr/bin/env python3
"""Is `--schedule auto` ever slower than the best named schedule that needs no more memory?

  order_grid.py REHEARSE ROWS.csv [--seconds 2] [--limit N]   runs the plans that ROWS.csv lacks
  order_grid.py REHEARSE ROWS.csv --named EARLIER.csv         the same; named schedules as found earlier
  order_grid.py --summary ROWS.csv                            prints the distribution of gains and gaps

Each plan is a process of its own. Its row is written as soon as it is known, so the script may be
interrupted and started again. The named schedules are run one by one, each by SimGrid, and do not come from
the search itself. The exit status is 1 where some plan was slower than a named schedule.
"""
import argparse
import csv
import itertools
import json
import os
import random
import resource
import subprocess
import sys

COLUMNS = [
    "case", "model", "tp", "pp", "vpp", "microbatches", "sequence_parallel", "recompute", "experts",
    "uneven_stages", "memory", "memory_bytes", "named", "named_group", "named_s", "found_s", "needed_bytes",
    "bound_s", "gain", "gap", "named_runs", "search_cpu_s", "refusal",
]
LAYERS = {"llama3-8b": 32, "llama3-70b": 80, "mixtral-8x22b": 56}
EXPERTS = 8
TOLERANCE = 1e-9  # of a step time: one that was written and read again


def cases():
    """288 plans: every combination of five dimensions. The others are drawn, always alike."""
    product = itertools.product(LAYERS, (4, 8, 16, 32), (1, 2, 4, 8), (1, 8), ("none", "selective", "full"))
    for number, (model, pp, times, tp, recompute) in enumerate(product):
        drawn = random.Random(number)
        chunks = [vpp for vpp in (1, 2, 4) if pp * vpp <= LAYERS[model]]
        vpp = chunks[int(drawn.random() * len(chunks))]
        yield {
            "case": number,
            "model": model,
            "tp": tp,
            "pp": pp,
            "vpp": vpp,
            "microbatches": pp * times,
            # Megatron-LM demands it of experts with tensor parallelism.
            "sequence_parallel": "on" if tp > 1 and (drawn.random() < 0.5 or "mixtral" in model) else "off",
            "recompute": recompute,
            "experts": EXPERTS if "mixtral" in model else 0,
            "uneven_stages": int(drawn.random() < 0.4 or LAYERS[model] % (pp * vpp) != 0),
            "memory": ("least", "usual", "ample")[int(drawn.random() * 3)],
        }


def layers_of(case):
    """Fewer layers on the last stage, which has the head; what does not divide goes to the first stages."""
    stages = case["pp"] * case["vpp"]
    least, more = divmod(LAYERS[case["model"]], stages)
    layers = [least + (stage < more) for stage in range(stages)]
    if more == 0 and least > 0:
        layers[-1] -= 1
        layers[1] += 1
    return ",".join(map(str, layers))


def flags_of(case):
    replicas = EXPERTS if case["experts"] and case["tp"] == 1 else 1
    flags = {
        "model": case["model"], "cluster": "dgx-h100", "gpus": case["pp"] * case["tp"] * replicas, "tp": case["tp"],
        "pp": case["pp"], "vpp": case["vpp"], "mbs": 1, "gbs": case["microbatches"] * replicas, "seq": 4096,
        "sequence-parallel": case["sequence_parallel"], "recompute": case["recompute"],
    }
    if case["experts"]:
        flags.update(ep=EXPERTS, etp=1)
    if case["uneven_stages"]:
        flags["layers-per-stage"] = layers_of(case)
    return flags


def named_schedules(case):
    """(name, group) of every schedule that lays the stages like one that `auto` may choose."""
    microbatches, pp, vpp = case["microbatches"], case["pp"], case["vpp"]
    if vpp == 1:
        return [(name, 0) for name in ("gpipe", "1f1b", "zb-h1", "zb-h2")]
    groups = {pp, microbatches}
    size = float(pp)
    while size < microbatches:  # each two fifths larger, and those that divide the microbatches
        groups.add(int(size))
        size *= 1.4
    groups.update(group for group in range(pp, microbatches, pp) if microbatches % group == 0)
    legal = [group for group in sorted(groups) if microbatches % group in (0, *range(pp, group))]
    named = [("interleaved-1f1b", group) for group in legal]
    if vpp == 2:
        named += [(name, 0) for name in ("zb-v", "v-half", "v-min")]
        if microbatches >= 2 * pp:
            named.append(("dualpipe-v", 0))
    return named


def simulate(program, flags):
    """The report, or the message of a refusal."""
    command = [program, "simulate", "--json", "--allow-oom"]
    for key, value in flags.items():
        command += ["--" + key, str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip() or f"exit status {done.returncode}"
    return json.loads(done.stdout), ""


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_named(program, case, flags):
    """The row with the memory limit and the best named schedule within it; without these where none runs."""
    runs = []
    refusal = ""
    for name, group in named_schedules(case):
        asked = dict(flags, schedule=name)
        asked["overlap-p2p"] = "on"  # as `auto` does, so that the gain is that of the order alone
        if group:
            asked["microbatch-group"] = group
        report, message = simulate(program, asked)
        if report is None:
            refusal = f"{name} {group}: {message}"
            continue
        runs.append((report["step_time_s"], report["memory"]["needed_bytes"], name, group))
    row = dict(case, named_runs=len(runs), refusal=refusal)
    if not runs:
        return row
    usual = next(run for run in runs if run[2] in ("1f1b", "interleaved-1f1b"))
    bytes_needed = [run[1] for run in runs]
    limit = {"least": min(bytes_needed), "usual": usual[1], "ample": max(bytes_needed)}[case["memory"]]
    best = min(run for run in runs if run[1] <= limit)
    row.update(memory_bytes=int(limit) + 1, named=best[2], named_group=best[3], named_s=best[0])
    return row


def run_case(program, case, seconds, earlier):
    flags = flags_of(case)
    row = earlier or run_named(program, case, flags)
    if not row.get("named_s"):
        return row
    before = cpu_seconds()
    searched = dict(flags, schedule="auto")
    searched["schedule-seconds"] = seconds
    searched["schedule-memory"] = f"{row['memory_bytes']}B"
    report, message = simulate(program, searched)
    row["search_cpu_s"] = round(cpu_seconds() - before, 2)
    if report is None:
        row["refusal"] = "auto: " + message
        return row
    found, bound = report["step_time_s"], report["schedule_search"]["least_step_time_s"]
    row.update(found_s=found, needed_bytes=int(report["memory"]["needed_bytes"]), bound_s=bound,
               gain=1 - found / float(row["named_s"]), gap=found / bound - 1 if bound else "")
    return row


def say_distribution(what, values):
    values = sorted(values)
    at = [values[round(share * (len(values) - 1))] for share in (0, 0.1, 0.5, 0.9, 1)]
    print("{:<34} least {:6.2f}  p10 {:6.2f}  median {:6.2f}  p90 {:6.2f}  most {:6.2f} %".format(
        what, *(100 * value for value in at)))


def summary(path):
    """Prints the distributions; returns how many plans broke the rule."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    whole = [row for row in rows if row["found_s"]]
    broken = [row for row in whole if float(row["found_s"]) > float(row["named_s"]) * (1 + TOLERANCE)]
    fuller = [row for row in whole if float(row["needed_bytes"]) > float(row["memory_bytes"]) * (1 + 1e-6)]
    under = [row for row in whole if row["bound_s"] and float(row["bound_s"]) > float(row["found_s"]) * (1 + TOLERANCE)]
    refused = [row for row in rows if not row["found_s"]]
    print(f"{len(rows)} plans, {sum(int(row['named_runs'] or 0) for row in rows)} runs of named schedules")
    for column in ("gain", "gap"):
        values = [(float(row[column]), row) for row in whole if row[column]]
        if not values:
            continue
        say_distribution(column, [value for value, _ in values])
        for key in ("model", "pp", "vpp", "memory", "sequence_parallel", "recompute", "uneven_stages"):
            for choice in sorted({row[key] for row in whole}, key=lambda text: (len(text), text)):
                chosen = [value for value, row in values if row[key] == choice]
                say_distribution(f"  {column}, {key} {choice} ({len(chosen)})", chosen)
    print(f"search: {sum(float(row['search_cpu_s']) for row in whole):.0f} CPU seconds in all, "
          f"at most {max(float(row['search_cpu_s']) for row in whole):.1f}")
    for what, of in (("slower than a named schedule", broken), ("above the memory", fuller),
                     ("below the bound", under), ("refused", refused)):
        print(f"{what}: {len(of)}")
        for row in of:
            print("  " + " ".join(f"{key}={value}" for key, value in row.items() if value))
    return len(broken) + len(fuller) + len(under) + len(refused)


def rows_of(path):
    """By number of the plan."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {int(row["case"]): row for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("rows")
    parser.add_argument("--seconds", type=float, default=2, help="work of each search [2]")
    parser.add_argument("--limit", type=int, default=1000, help="run at most so many plans")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the plans to run")
    parser.add_argument("--named", help="rows of an earlier run, whose named schedules are taken")
    parser.add_argument("--summary", action="store_true")
    asked = parser.parse_args()
    if asked.program and not asked.summary:
        known, earlier = rows_of(asked.rows), rows_of(asked.named)
        left = [case for case in cases() if case["case"] not in known]
        if asked.only:
            left = [case for case in left if case["case"] in asked.only]
        random.Random(0).shuffle(left)  # a part of the grid is then like the whole
        with open(asked.rows, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if not known:
                writer.writeheader()
            for case in left[:asked.limit]:
                writer.writerow(run_case(asked.program, case, asked.seconds, earlier.get(case["case"])))
                file.flush()
    return 1 if summary(asked.rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
