"""The measurements of a case, and the goals they are compared with."""
import statistics
from harness import KiB, MiB, measure


class Result:
    """The runs of a case, and the goals they are compared with."""

    def __init__(self, title):
        self.title, self.runs, self.goals = title, {}, []

    def median(self, client, key):
        return statistics.median(run[key] for run in self.runs[client])

    def ratio(self, ours, rival, key):
        """The median of the ratios; each ratio is within one round."""
        return statistics.median(a[key] / b[key] for a, b in zip(self.runs[ours], self.runs[rival]))

    def goal(self, what, value, relation, wanted, unit=""):
        met = value <= wanted if relation == "<=" else value >= wanted
        self.goals.append((self.title, what, f"{value:.3g}{unit}", f"{relation} {wanted:g}{unit}", met))


def rounds(result, contenders, count):
    """A B C, C B A, ...: no client is always first."""
    for number in range(count):
        for label in list(contenders)[:: 1 if number % 2 == 0 else -1]:
            run = contenders[label]()
            result.runs.setdefault(label, []).append(run)
            print(f"  {label:18} {run['wall']:8.2f} s  {run['rate'] / 1e6:7.0f} MB/s  {run['cpu_per_gb']:6.3f} s/GB  "
                  f"{run['peak'] / MiB:5.1f} MiB", flush=True)
    return result


def bind(label, command, data, stats):
    return lambda: measure(label, command, data.bytes, data.files, stats=stats)


def against_link(result, size, mbit, rtt_ms=0):
    """Adds to each run its use of the link: the time of an ideal sender as a share of the run's time."""
    seconds = size * 8 / (mbit * 1e6) + rtt_ms / 1e3
    for run in sum(result.runs.values(), []):
        run["ideal"] = 100 * seconds / run["wall"]


def own_costs(result):
    """Requirements for every push: no temporary file, little memory, a small journal."""
    ours = result.runs["fullbore"]
    result.goal("peak memory", max(run["peak"] for run in ours) / MiB, "<=", 32, " MiB")
    result.goal("temporary files", max(run["temporary"] for run in ours), "<=", 0, " bytes")
    if ours[0]["files"] > 1:
        per_file = max(run["journal"] / run["files"] for run in ours)
        result.goal("journal growth a file", per_file / KiB, "<=", 2, " KiB")
