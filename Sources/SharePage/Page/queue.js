/** The files that the page sends: which are next, how many at once, and how far all of them are. */
import * as memory from "./memory.js";
import { Names } from "./names.js";
import { size, text } from "./text.js";
import { Failed, transfer } from "./transfer.js";
import { terminate } from "./tus.js";

const atOnce = { least: 2, most: 4 };

/** Dispatches `change` whenever something to show has changed, `added` before new files begin, and `done` when a file
 *  was sent. */
export class Queue extends EventTarget {
  #items = new Map();
  #names = new Names();
  #limit = 3;
  #rate = { last: 0, grew: false, rest: 0, window: 0, ticks: 0 };
  waiting = [];
  active = new Set();
  failed = new Set();
  paused = new Set();
  elsewhere = new Set();
  finished = [];
  /** Bytes per second, smoothed; 0: nothing moves. */
  bytesPerSecond = 0;
  isPaused = false;
  /** Whether folders are being searched for more files. */
  isLooking = false;
  /** The counts since all files were finished for the last time. */
  round = { count: 0, bytes: 0, doneCount: 0, doneBytes: 0 };
  #moved = 0;
  #begun = new Set();

  /** `context` has `maxSize`, `lists` and `askForCode(signal)`. */
  constructor(context) {
    super();
    this.context = {
      names: this.#names, progressed: (item, sent) => this.#progress(item, sent), changed: () => this.#change(),
      get maxSize() { return context.maxSize; }, get lists() { return context.lists; },
      askForCode: (signal) => context.askForCode(signal),
    };
    setInterval(() => this.#tick(), 1000);
    memory.events.addEventListener("released", () => this.#retryElsewhere());
    setInterval(() => this.#retryElsewhere(), 5000);
  }

  get isBusy() { return this.active.size > 0 || this.waiting.length > 0; }
  has(key) { return this.#items.has(key); }

  /** Adds files for `folder`: each has `file`, `path` below the folder, and perhaps `handle`. */
  async add(folder, files) {
    if (!this.isBusy && this.paused.size === 0 && this.failed.size === 0) {
      this.round = { count: 0, bytes: 0, doneCount: 0, doneBytes: 0 };
    }
    const added = [];
    for (const { file, path, handle } of files) {
      const key = memory.keyOf(folder, path, file);
      const known = this.#items.get(key);
      if (known && known.state !== "done" && known.state !== "failed") continue;
      if (known) this.#drop(known);
      const item = {
        key, file, handle, folder, path, target: path, name: path.slice(path.lastIndexOf("/") + 1), size: file.size,
        state: "waiting", sent: 0, offset: 0, url: null, chunk: 8 << 20, problem: null, outcome: null,
      };
      this.#items.set(key, item);
      this.round.count += 1;
      this.round.bytes += item.size;
      this.waiting.push(item);
      added.push(item);
    }
    this.dispatchEvent(new Event("added"));
    this.#change();
    this.#pump();
    if (added.length > 0) this.canRemember = await memory.expect(added.map(memory.newRecord));
  }

  /** How far the files are. Failed files count neither as sent nor as to be sent. */
  totals() {
    let sent = this.round.doneBytes;
    let bytes = this.round.bytes;
    for (const item of this.#begun) sent += item.sent;
    for (const item of this.failed) {
      bytes -= item.size;
      if (this.#begun.has(item)) sent -= item.sent;
    }
    const count = this.round.count - this.failed.size;
    return { sent, bytes, count, doneCount: this.round.doneCount };
  }

  pauseAll() {
    this.isPaused = true;
    for (const item of this.active) item.control.abort("pauseAll");
    this.#change();
  }

  goOn() {
    this.isPaused = false;
    this.#change();
    this.#pump();
  }

  pause(item) {
    if (this.active.has(item)) return item.control.abort("pause");
    this.waiting = this.waiting.filter((other) => other !== item);
    this.#hold(item);
  }

  #hold(item) {
    this.paused.add(item);
    item.state = "paused";
    item.problem = null;
    this.#change();
  }

  /** Goes on with a file that is paused or failed. */
  resume(item) {
    this.paused.delete(item);
    this.failed.delete(item);
    item.state = "waiting";
    item.problem = null;
    this.waiting.unshift(item);
    this.#change();
    this.#pump();
  }

  /** Sends the file no more, and deletes what the server has of it. */
  remove(item) {
    if (this.active.has(item)) return item.control.abort("remove");
    this.round.count -= 1;
    this.round.bytes -= item.size;
    this.#drop(item);
    memory.forget([item.key]);
    if (item.url && item.state !== "done") terminate(item.url);
    this.#change();
  }

  #drop(item) {
    for (const set of [this.failed, this.paused, this.elsewhere, this.#begun]) set.delete(item);
    this.waiting = this.waiting.filter((other) => other !== item);
    this.finished = this.finished.filter((other) => other !== item);
    this.#items.delete(item.key);
    this.#names.end(item, item.state === "done");
  }

  clearFinished() {
    for (const item of this.finished) this.#items.delete(item.key);
    this.finished = [];
    this.#change();
  }

  #pump() {
    while (!this.isPaused && this.active.size < this.#limit) {
      const index = this.waiting.findIndex((item) => this.#names.reserve(item));
      if (index < 0) return;
      const [item] = this.waiting.splice(index, 1);
      this.active.add(item);
      this.#run(item);
    }
  }

  async #run(item) {
    item.control = new AbortController();
    const { signal } = item.control;
    try {
      const limit = this.context.maxSize;
      if (limit !== null && item.size > limit) throw new Failed(text("tooLarge", { size: size(limit) }));
      const record = await memory.claim(item.key);
      if (record === null) return this.#stop(item, "elsewhere");
      if (record.target) item.target = record.target;
      item.url ??= record.url ?? null;
      item.wasSent = record.isFinished === true;
      const outcome = await transfer(item, this.context, signal);
      this.#finish(item, outcome);
    } catch (error) {
      if (signal.aborted) return this.#stop(item, signal.reason);
      item.problem = error instanceof Failed ? error.message : String(error);
      this.#stop(item, "fail");
    }
  }

  #finish(item, outcome) {
    this.active.delete(item);
    this.#begun.delete(item);
    Object.assign(item, { state: "done", outcome, file: null, handle: null, control: null, problem: null });
    this.round.doneCount += 1;
    this.round.doneBytes += item.size;
    this.finished.push(item);
    this.#names.end(item, true);
    memory.finish(item);
    this.dispatchEvent(new CustomEvent("done", { detail: item }));
    this.#change();
    this.#pump();
  }

  /** Takes a file from the active ones, for `reason`. */
  #stop(item, reason) {
    this.active.delete(item);
    item.state = "waiting";
    if (reason !== "pauseAll") this.#names.end(item, false);
    if (reason !== "elsewhere") memory.release(item.key);
    if (reason === "pauseAll") this.waiting.unshift(item);
    if (reason === "pause") this.#hold(item);
    if (reason === "remove") this.remove(item);
    if (reason === "elsewhere") {
      item.state = "elsewhere";
      this.elsewhere.add(item);
    }
    if (reason === "fail") {
      item.state = "failed";
      this.failed.add(item);
    }
    this.#change();
    this.#pump();
  }

  /** Another tab may have sent or given up the files that it sends. */
  #retryElsewhere() {
    if (this.elsewhere.size === 0) return;
    for (const item of this.elsewhere) {
      item.state = "waiting";
      this.waiting.push(item);
    }
    this.elsewhere.clear();
    this.#pump();
  }

  #progress(item, sent) {
    if (sent > item.sent) this.#moved += sent - item.sent;
    item.sent = sent;
    this.#begun.add(item);
    this.#change();
  }

  #change() { this.dispatchEvent(new Event("change")); }

  #tick() {
    const moved = this.#moved;
    this.#moved = 0;
    if (this.active.size === 0) {
      this.bytesPerSecond = 0;
      this.#rate = { last: 0, grew: false, rest: 0, window: 0, ticks: 0 };
      return;
    }
    this.bytesPerSecond = this.bytesPerSecond === 0 ? moved : this.bytesPerSecond * 0.85 + moved * 0.15;
    this.#rate.window += moved;
    this.#rate.ticks += 1;
    if (this.#rate.ticks === 4) this.#adaptLimit();
    this.#change();
  }

  /** Sends more files at once as long as that makes all of them together faster. */
  #adaptLimit() {
    const state = this.#rate;
    const rate = state.window;
    const isWorse = rate < state.last * (state.grew ? 1.05 : 0.9);
    state.grew = false;
    if (isWorse && this.#limit > atOnce.least) {
      this.#limit -= 1;
      state.rest = 5;
    } else if (state.rest > 0) {
      state.rest -= 1;
    } else if (this.#limit < atOnce.most && this.waiting.length > 0) {
      this.#limit += 1;
      state.grew = true;
      this.#pump();
    }
    Object.assign(state, { last: rate, window: 0, ticks: 0 });
  }
}
