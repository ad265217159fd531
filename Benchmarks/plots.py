"""Draws bar charts as SVG without a library, so that a report needs no program to view them."""
import html, statistics

ROW, LEFT, WIDTH, GAP = 22, 150, 330, 40
OURS, OTHERS = "#1f6feb", "#8b949e"


def bars(result):
    """Draws seconds and CPU time of each client of a case: the median as a bar, the rounds as ticks on it."""
    metrics = [("seconds", lambda run: run["wall"]), ("CPU seconds a GB", lambda run: run["cpu_per_gb"])]
    height = 46 + ROW * len(result.runs)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + 2 * WIDTH + 2 * GAP}" height="{height}" '
        'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="#fff"/>',
        text(8, 18, result.title, "bold")]
    for column, (name, value) in enumerate(metrics):
        left = LEFT + column * (WIDTH + GAP)
        most = max(value(run) for runs in result.runs.values() for run in runs) or 1
        scale = (WIDTH - 60) / most
        out.append(text(left, 36, name))
        for row, (client, runs) in enumerate(result.runs.items()):
            top, values = 42 + row * ROW, [value(run) for run in runs]
            middle = statistics.median(values)
            if column == 0:
                out.append(text(8, top + 15, client))
            color = OURS if client.startswith("fullbore") else OTHERS
            out.append(f'<rect x="{left}" y="{top + 3}" width="{middle * scale:.1f}" height="{ROW - 7}" fill="{color}"/>')
            out += [f'<path d="M{left + v * scale:.1f} {top + 3}v{ROW - 7}" stroke="#000" stroke-opacity=".45"/>' for v in values]
            out.append(text(left + max(values) * scale + 6, top + 15, f"{middle:.3g}"))
    return "\n".join(out + ["</svg>"]) + "\n"


def text(x, y, words, weight="normal"):
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}">{html.escape(words)}</text>'
