// The rows of files to be sent, and of finished ones, which are folded.
import { copy, element, setAttribute, setIcon, setText, showName, fitted, WindowedList } from "./list.js";
import { size, text } from "./text.js";
import { drawThumbnail } from "./thumbnails.js";

// Each drawing leaves garbage, which browsers collect late. In ms.
const period = 1000;
// Until then, rows keep their places: someone is about to press a button.
let stillUntil = 0;
let nextDrawing = 0;

// Returns a function that shows the queue's state.
export function showRows(queue) {
  const folded = element("show-finished");
  const again = element("retry-all");
  const uploads = new WindowedList(element("uploads"), () => makeRow(queue), fill, element("pause-all"));
  const finished = new WindowedList(element("finished"), () => makeRow(queue), fill, folded);
  for (const type of ["pointerdown", "pointermove"]) {
    element("uploads").addEventListener(type, () => (stillUntil = performance.now() + 800), { passive: true });
  }
  queue.addEventListener("added", () => (nextDrawing = 0));
  let planned = null;
  const show = () => {
    clearTimeout(planned);
    const rest = Math.max(stillUntil, nextDrawing) - performance.now();
    if (rest > 0) return (planned = setTimeout(show, rest));
    nextDrawing = performance.now() + period;
    const { length } = queue.retryable;
    // One file has a button in its row.
    again.hidden = length < 2;
    setText(again, text("retryAll", { n: length }));
    uploads.show([...queue.failed, ...queue.active, ...queue.elsewhere, ...queue.paused, ...queue.waiting]);
    folded.hidden = queue.finished.length === 0;
    setText(folded, text("finished", { n: queue.finished.length }));
    finished.show(queue.finished);
  };
  again.onclick = () => {
    queue.resume(queue.retryable);
    // The button vanishes, and the focus must be somewhere.
    element("pause-all").focus();
  };
  folded.onclick = () => {
    element("finished").hidden = !element("finished").hidden;
    setAttribute(folded, "aria-expanded", !element("finished").hidden);
    nextDrawing = 0;
    show();
  };
  return show;
}

function makeRow(queue) {
  const row = copy("upload");
  row.change.onclick = () => {
    nextDrawing = 0;
    if (["paused", "failed"].includes(row.item.state)) queue.resume([row.item]);
    else queue.pause(row.item);
  };
  row.removal.onclick = () => {
    stillUntil = nextDrawing = 0;
    queue.remove(row.item);
  };
  return row;
}

function fill(row, item, width) {
  const { state } = item;
  const isDone = state === "done";
  // A tap on a row that failed shows the whole reason.
  row.tabIndex = state === "failed" ? 0 : -1;
  setAttribute(row, "data-state", state);
  showName(row.name, item.path, isDone ? width - 110 : 1.8 * (width - 200));
  setText(row.status, statusOf(item, width));
  row.share.hidden = item.sent === 0 || isDone || state === "failed";
  row.share.value = item.sent / item.size || 0;
  showPicture(row);
  setIcon(row.drawing, state === "failed" ? "problem" : isDone ? "done" : "file");
  const action = { failed: "retry", paused: "goOn" }[state] ?? "pause";
  for (const [button, name] of [[row.change, action], [row.removal, "remove"]]) {
    button.hidden = isDone || (name === "retry" && item.isFinal);
    setIcon(button.firstChild, name);
    setAttribute(button, "aria-label", `${text(name)}: ${item.path}`);
  }
}

function showPicture(row) {
  row.canvas.hidden = !drawThumbnail(row, () => showPicture(row));
  row.drawing.toggleAttribute("hidden", !row.canvas.hidden);
}

function statusOf(item, width) {
  const { state, problem, path, target } = item;
  const isDone = state === "done";
  const partly = text("partly", { sent: size(item.sent), size: size(item.size) });
  if (problem) return problem;
  if (state === "sending" || state === "retrying") return partly;
  if (isDone && target !== path) return text("renamed", { name: fitted(target.split("/").pop(), width - 160) });
  const amount = item.sent > 0 && !isDone ? partly : size(item.size);
  return amount + " · " + text(isDone ? item.outcome : state);
}
