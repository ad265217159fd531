// The files to be sent: which are next, how many at once, and how far all are.
import * as memory from "./memory.js";
import { Names } from "./names.js";
import { size, text } from "./text.js";
import { Failed, transfer } from "./transfer.js";
import { terminate } from "./tus.js";

// Dispatches `change`, `added` before new files or failed ones begin, and `done` with a file that was sent.
export class Queue extends EventTarget {
  waiting = [];
  active = new Set();
  failed = new Set();
  paused = new Set();
  // Sent by another tab.
  elsewhere = new Set();
  finished = [];
  isPaused = false;
  // Smoothed; 0: nothing moves.
  bytesPerSecond = 0;
  #items = new Map();
  #names = new Names();
  #moved = 0;
  // Seconds in which files were sent without a pause, and in which nothing has moved.
  #seconds = 0;
  #silence = 0;

  constructor(context) {
    super();
    this.context = Object.assign(Object.create(context), {
      names: this.#names, progressed: (...all) => this.#progress(...all), changed: () => this.#change(),
    });
    this.#startRound();
    setInterval(() => this.#tick(), 1000);
    setInterval(() => this.#retryElsewhere(), 5000);
    memory.events.addEventListener("released", () => this.#retryElsewhere());
  }

  get isBusy() { return this.active.size + this.waiting.length > 0; }
  has(key) { return this.#items.has(key); }
  // Bytes to be sent; `isPromised`: without those for which the server keeps room since their uploads have begun.
  rest(isPromised) {
    let rest = this.round.bytes - this.round.sent;
    for (const item of this.#items.values()) if (isPromised && item.url && !this.failed.has(item)) rest -= item.size - item.sent;
    return rest;
  }

  // Counts what is chosen until all is finished.
  #startRound() { this.round = { count: 0, doneCount: 0, same: 0, renamed: 0, bytes: 0, sent: 0 }; }

  // `isLooking`: folders are searched for files.
  look(isLooking) {
    if (isLooking && this.#items.size === this.finished.length) this.#startRound();
    this.isLooking = isLooking;
    this.#change();
  }

  // A `choice` may be added in parts.
  add(folder, files, choice = {}) {
    const added = [];
    for (const { file, path, handle } of files) {
      let key = memory.keyOf(folder, path, file);
      const known = this.#items.get(key);
      if (known?.choice === choice) {
        // Two files of one choice have the same name, size and time. Neither resumes after a reload, since nothing tells which
        // of them is chosen again.
        memory.forget([key]);
        key += `\n${Math.random()}`;
      } else if (known && !["done", "failed"].includes(known.state)) continue;
      else if (known) this.#drop(known);
      const item = {
        key, choice, file, handle, folder, path, target: path, size: file.size, state: "waiting", sent: 0, offset: 0, url: null,
        chunk: 8 << 20, tries: 0, problem: null,
      };
      this.#items.set(key, item);
      if (this.#isTooLarge(item)) continue;
      this.#count(item, 1);
      added.push(item);
    }
    this.waiting.push(...added);
    this.dispatchEvent(new Event("added"));
    this.#pump();
    memory.expect(added);
  }

  // Tells of a file that the server takes no part of, before others are sent.
  #isTooLarge(item) {
    const { maxSize } = this.context;
    const isTooLarge = maxSize !== null && item.size > maxSize;
    if (isTooLarge) {
      Object.assign(item, { problem: text("tooLarge", { size: size(maxSize) }), isFinal: true });
      this.#enter(item, "failed");
    }
    return isTooLarge;
  }

  #count(item, sign) {
    this.round.count += sign;
    this.round.bytes += sign * item.size;
    this.round.sent += sign * item.sent;
  }

  pauseAll() {
    this.isPaused = true;
    for (const item of this.active) item.control.abort("pauseAll");
    this.#change();
  }

  goOn() {
    this.isPaused = false;
    this.#pump();
  }

  // The row of a finished or removed file may still have its buttons.
  #isOver(item) { return item.state === "done" || this.#items.get(item.key) !== item; }

  pause(item) {
    if (this.#isOver(item)) return this.#change();
    if (this.active.has(item)) return item.control.abort("paused");
    this.#leave(item);
    this.#enter(item, "paused");
  }

  // Failed files that another attempt may help.
  get retryable() { return [...this.failed].filter((item) => !item.isFinal); }

  // Sends files that were paused, that have failed, or that another tab has sent.
  resume(items) {
    const again = [];
    for (const item of [...items].reverse()) {
      if (this.#isOver(item)) continue;
      const hadFailed = this.failed.has(item);
      this.#leave(item);
      if (this.#isTooLarge(item)) continue;
      if (hadFailed) {
        item.tries = 0;
        this.#count(item, 1);
        again.push(item);
      }
      Object.assign(item, { state: "waiting", problem: null });
      this.waiting.unshift(item);
    }
    if (again.length > 0) this.dispatchEvent(new Event("added"));
    this.#pump();
    // What was refused was forgotten.
    memory.expect(again);
  }

  // Deletes also what the server has of the file.
  remove(item) {
    if (this.#isOver(item)) return this.#change();
    if (this.active.has(item)) return item.control.abort("remove");
    if (!this.failed.has(item)) this.#count(item, -1);
    this.#drop(item);
    // Another page may send this file, and needs its record and what the server has of it.
    memory.claim(item.key).then((record) => {
      if (!record) return;
      memory.forget([item.key]);
      if (item.url) terminate(item.url);
    });
    this.#endPause();
    this.#change();
  }

  // What is chosen next is sent at once if nothing else is left.
  #endPause() {
    if (this.waiting.length === 0 && this.active.size === 0) this.isPaused = false;
  }

  #drop(item) {
    this.#leave(item);
    this.finished = this.finished.filter((other) => other !== item);
    this.#items.delete(item.key);
    this.#names.end(item, item.state === "done");
  }

  #leave(item) {
    for (const set of [this.active, this.failed, this.paused, this.elsewhere]) set.delete(item);
    this.waiting = this.waiting.filter((other) => other !== item);
  }

  #enter(item, state) {
    item.state = state;
    this[state].add(item);
    this.#change();
  }

  clearFinished() {
    for (const item of this.finished) this.#items.delete(item.key);
    this.finished = [];
    this.#change();
  }

  #pump() {
    // Four at once hide the delay of requests; a slow link is for two.
    const most = this.bytesPerSecond > 0 ? Math.min(4, Math.max(2, this.bytesPerSecond / 500_000)) : 3;
    while (!this.isPaused && this.active.size < Math.floor(most)) {
      const index = this.waiting.findIndex((item) => this.#names.reserve(item));
      if (index < 0) break;
      const [item] = this.waiting.splice(index, 1);
      this.active.add(item);
      this.#run(item);
    }
    this.#change();
  }

  async #run(item) {
    item.control = new AbortController();
    const { signal } = item.control;
    let state = "failed";
    try {
      const record = await memory.claim(item.key);
      if (record) {
        item.target = record.target ?? item.target;
        item.url = record.url ?? item.url;
        item.wasSent = record.isFinished === true;
        item.outcome = await transfer(item, this.context, signal);
        if (item.outcome !== "elsewhere") return this.#finish(item);
      }
      state = "elsewhere";
    } catch (error) {
      if (signal.aborted) state = signal.reason;
      else Object.assign(item, { problem: error instanceof Failed ? error.message : String(error), isFinal: error.isFinal });
      if (error.isRefused) memory.forget([item.key]);
    }
    this.active.delete(item);
    if (state !== "pauseAll") this.#names.end(item, false);
    if (state !== "elsewhere") memory.release(item.key);
    if (state === "remove") this.remove(item);
    else if (state === "pauseAll") {
      Object.assign(item, { state: "waiting", problem: null });
      this.waiting.unshift(item);
    } else {
      if (state === "failed") this.#count(item, -1);
      else item.problem = null;
      this.#enter(item, state);
    }
    this.#pump();
  }

  #finish(item) {
    this.active.delete(item);
    this.#progress(item, item.size, false);
    const { url, target } = item;
    memory.release(item.key, { url, target, handle: null, isFinished: true, time: Date.now() });
    // The browser can release the file.
    Object.assign(item, { state: "done", file: null, handle: null, control: null, problem: null });
    this.round.doneCount += 1;
    if (item.outcome !== "sent") this.round.same += 1;
    else if (target !== item.path) this.round.renamed += 1;
    this.finished.push(item);
    this.#names.end(item, true);
    this.dispatchEvent(new CustomEvent("done", { detail: item }));
    this.#pump();
  }

  #retryElsewhere() {
    if (this.elsewhere.size > 0) this.resume(this.elsewhere);
  }

  // `hasMoved`: the bytes were sent just now.
  #progress(item, sent, hasMoved = true) {
    if (hasMoved) this.#moved += Math.max(0, sent - item.sent);
    this.round.sent += sent - item.sent;
    item.sent = sent;
    this.#change();
  }

  #change() { this.dispatchEvent(new Event("change")); }

  #tick() {
    const moved = this.#moved;
    this.#moved = 0;
    this.#silence = moved > 0 ? 0 : this.#silence + 1;
    // A mean over a gap would count down while nothing moves, and be wrong for long after it.
    this.#seconds = this.active.size > 0 && this.#silence < 3 ? this.#seconds + 1 : 0;
    // The mean of all seconds at first, so that a slow begin does not count for long.
    const weight = Math.max(0.15, 1 / this.#seconds);
    this.bytesPerSecond = this.#seconds > 0 ? this.bytesPerSecond * (1 - weight) + moved * weight : 0;
    if (this.active.size > 0) this.#pump();
  }
}
