// The rows of files to be sent, and of finished ones, which are folded.
import { copy, drawLists, element, setAttribute, setIcon, setText, showName, fitted, WindowedList } from "./list.js";
import { size, text } from "./text.js";
import { drawThumbnail } from "./thumbnails.js";

// Until then, rows keep their places: someone is about to press a button.
let stillUntil = 0;

// Returns a function that shows the queue's state.
export function showRows(queue) {
  const folded = element("show-finished");
  const uploads = new WindowedList(element("uploads"), () => makeRow(queue), fill, element("pause-all"));
  const finished = new WindowedList(element("finished"), () => makeRow(queue), fill, folded);
  for (const type of ["pointerdown", "pointermove"]) {
    element("uploads").addEventListener(type, () => (stillUntil = performance.now() + 800), { passive: true });
  }
  const show = () => {
    const current = [...queue.failed, ...queue.active, ...queue.elsewhere, ...queue.paused, ...queue.waiting];
    if (performance.now() < stillUntil) setTimeout(show, 300);
    else uploads.show(current);
    folded.hidden = queue.finished.length === 0;
    setText(folded, text("finished", { n: queue.finished.length }));
    finished.show(queue.finished);
  };
  folded.onclick = () => {
    element("finished").hidden = !element("finished").hidden;
    setAttribute(folded, "aria-expanded", !element("finished").hidden);
    show();
  };
  return show;
}

function makeRow(queue) {
  const row = copy("upload");
  row.change.onclick = () => (["paused", "failed"].includes(row.item.state) ? queue.resume(row.item) : queue.pause(row.item));
  row.removal.onclick = () => {
    stillUntil = 0;
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
  row.canvas.hidden = !drawThumbnail(row, drawLists);
  row.drawing.toggleAttribute("hidden", !row.canvas.hidden);
  setIcon(row.drawing, state === "failed" ? "problem" : isDone ? "done" : "file");
  const action = { failed: "retry", paused: "goOn" }[state] ?? "pause";
  for (const [button, name] of [[row.change, action], [row.removal, "remove"]]) {
    button.hidden = isDone || (name === "retry" && item.isFinal);
    setIcon(button.firstChild, name);
    setAttribute(button, "aria-label", `${text(name)}: ${item.path}`);
  }
}

function statusOf(item, width) {
  const { state, problem, path, target } = item;
  if (problem) return problem;
  if (state === "sending" || state === "retrying") return text("partly", { sent: size(item.sent), size: size(item.size) });
  if (state === "done" && target !== path) return text("renamed", { name: fitted(target.split("/").pop(), width - 160) });
  return size(item.size) + " · " + text(state === "done" ? item.outcome : state);
}
