"""What a case has measured, and the goals it is held against."""
import statistics
from harness import MiB, measure


class Result:
    """A case's runs and the goals they are held against."""

    def __init__(self, title):
        self.title, self.runs, self.goals = title, {}, []

    def median(self, client, key):
        return statistics.median(run[key] for run in self.runs[client])

    def ratio(self, ours, rival, key):
        """The median of the ratios, each within one round."""
        return statistics.median(a[key] / b[key] for a, b in zip(self.runs[ours], self.runs[rival]))

    def goal(self, what, value, relation, wanted, unit=""):
        met = value <= wanted if relation == "<=" else value >= wanted
        self.goals.append((self.title, what, f"{value:.3g}{unit}", f"{relation} {wanted:g}{unit}", met))


def rounds(result, contenders, count):
    """A B C, C B A, ...: nobody is always first."""
    for number in range(count):
        for label in list(contenders)[:: 1 if number % 2 == 0 else -1]:
            run = contenders[label]()
            result.runs.setdefault(label, []).append(run)
            print(f"  {label:18} {run['wall']:8.2f} s  {run['rate'] / 1e6:7.0f} MB/s  {run['cpu_per_gb']:6.3f} s/GB  "
                  f"{run['peak'] / MiB:5.1f} MiB", flush=True)
    return result


def bind(label, command, data, stats):
    return lambda: measure(label, command, data.bytes, data.files, stats=stats)
