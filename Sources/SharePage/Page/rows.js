/** The list of files to be sent, and the one of finished files, which is folded. */
import { drawLists, icon, iconButton, make, setIcon, setText, WindowedList } from "./list.js";
import { size, text } from "./text.js";
import { drawThumbnail } from "./thumbnails.js";

const element = (id) => document.getElementById(id);

export function kindOf(name, isFolder = false) {
  if (isFolder) return "folder";
  if (/\.(jpe?g|png|gif|webp|hei[cf]|avif|tiff?|bmp|dng|cr[23]|nef|arw|svg)$/i.test(name)) return "image";
  return /\.(mp4|m4v|mov|webm|mkv|avi|mpe?g|mts|3gp)$/i.test(name) ? "film" : "file";
}

export class UploadRows {
  #queue;
  #folded = element("show-finished");
  /** Until this time, the rows keep their places: a finger or the pointer is about to press a button. */
  #stillUntil = 0;

  constructor(queue) {
    this.#queue = queue;
    const makeRow = () => this.#makeRow();
    const fill = (row, item) => this.#fill(row, item);
    this.uploads = new WindowedList(element("uploads"), makeRow, fill);
    this.finished = new WindowedList(element("finished"), makeRow, fill);
    this.uploads.refuge = element("pause-all");
    this.finished.refuge = this.#folded;
    for (const type of ["pointerdown", "pointermove"]) {
      element("uploads").addEventListener(type, () => (this.#stillUntil = performance.now() + 800), { passive: true });
    }
    this.#folded.onclick = () => {
      const isOpen = this.#folded.getAttribute("aria-expanded") !== "true";
      this.#folded.setAttribute("aria-expanded", isOpen);
      element("finished").hidden = !isOpen;
      this.show();
    };
  }

  show() {
    const queue = this.#queue;
    const current = new Set([...queue.failed, ...queue.active, ...queue.elsewhere, ...queue.paused, ...queue.waiting]);
    if (performance.now() < this.#stillUntil) {
      // Files that are gone stay as finished rows, and new ones come at the end.
      const kept = this.uploads.items.filter((item) => current.has(item) || item.state === "done");
      this.uploads.show([...new Set([...kept, ...current])]);
      setTimeout(() => this.show(), 300);
    } else {
      this.uploads.show([...current]);
    }
    this.#folded.hidden = queue.finished.length === 0;
    setText(this.#folded, text("showFinished", { n: queue.finished.length }));
    this.finished.show(queue.finished);
  }

  #makeRow() {
    const row = make("li", { className: "row" });
    row.canvas = make("canvas", { hidden: true });
    row.drawing = icon("file");
    row.name = make("span", { className: "name" });
    row.status = make("span", { className: "status" });
    row.bar = make("progress", { max: 1 });
    row.bar.setAttribute("aria-hidden", "true");
    row.first = iconButton("pause", () => {
      const { item } = row;
      if (["paused", "failed"].includes(item.state)) this.#queue.resume(item);
      else this.#queue.pause(item);
    });
    row.second = iconButton("remove", () => this.#queue.remove(row.item));
    row.refresh = drawLists;
    row.append(make("span", { className: "picture" }, row.canvas, row.drawing), row.name,
      make("span", { className: "buttons" }, row.first, row.second), row.status, row.bar);
    return row;
  }

  #fill(row, item) {
    const { state } = item;
    const isDone = state === "done";
    row.dataset.state = state;
    setText(row.name, item.path);
    setText(row.status, status(item));
    row.bar.hidden = isDone || state === "failed" || (state === "waiting" && item.sent === 0);
    row.bar.value = item.size > 0 ? item.sent / item.size : 0;
    row.canvas.hidden = !drawThumbnail(row);
    row.drawing.toggleAttribute("hidden", !row.canvas.hidden);
    setIcon(row.drawing, state === "failed" ? "problem" : isDone ? "done" : kindOf(item.name));
    row.first.hidden = isDone || state === "elsewhere";
    const action = state === "failed" ? "retry" : state === "paused" ? "goOn" : "pause";
    row.first.rename(action === "goOn" ? "go" : action, text("labelled", { action: text(action), name: item.path }));
    row.second.hidden = isDone;
    row.second.rename("remove", text("labelled", { action: text("remove"), name: item.path }));
  }
}

/** What a person should know about the file. */
function status(item) {
  if (item.state === "done") {
    const isRenamed = item.target !== item.path;
    const name = item.target.slice(item.target.lastIndexOf("/") + 1);
    const outcome = isRenamed && item.outcome === "sent" ? text("renamed", { name })
      : isRenamed && item.outcome === "same" ? text("sameRenamed", { name }) : text(item.outcome);
    return `${size(item.size)} · ${outcome}`;
  }
  if (item.problem) return item.problem;
  if (item.state === "sending" || item.state === "retrying") return text("sending", { sent: size(item.sent), size: size(item.size) });
  return `${size(item.size)} · ${text(item.state)}`;
}
