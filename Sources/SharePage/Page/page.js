/** The page: brings its parts together, and tells the person how far everything is. */
import { filesOf, offerChoices } from "./choose.js";
import { Folder } from "./folder.js";
import { make, setText } from "./list.js";
import * as memory from "./memory.js";
import { Queue } from "./queue.js";
import { UploadRows } from "./rows.js";
import * as server from "./server.js";
import { duration, percent, size, text, time, translatePage } from "./text.js";
import { link, wait } from "./tus.js";

const element = (id) => document.getElementById(id);
let about = null;
let folder = null;

// MARK: Notices

const notices = new Map();

/** Shows a message above the lists; `actions` are pairs of a label and a function. No message: it is removed. */
function notice(id, message, actions = []) {
  if (notices.get(id)?.message === message) return;
  notices.get(id)?.element.remove();
  notices.delete(id);
  if (!message) return;
  const buttons = actions.map(([label, action]) => make("button", { type: "button", textContent: label, onclick: action }));
  const shown = make("div", { className: "notice" }, make("p", { textContent: message }), ...buttons);
  element("notices").append(shown);
  notices.set(id, { message, element: shown });
  announce(message);
}

function announce(message) {
  element("live").textContent = message;
}

// MARK: The code

const gate = element("gate");
let asking = null;

/** Shows the field for the code until the server accepts one. */
function askForCode(signal) {
  asking ??= new Promise((resolve) => {
    gate.hidden = false;
    element("code").focus();
    gate.onsubmit = async (event) => {
      event.preventDefault();
      setText(element("code-wrong"), "");
      for (const reading of server.readings(element("code").value)) {
        server.setCode(reading);
        if (await isAccepted()) {
          gate.hidden = true;
          element("code").value = "";
          asking = null;
          return resolve();
        }
      }
      setText(element("code-wrong"), text("codeWrong"));
      element("code").select();
    };
  });
  return signal
    ? Promise.race([asking, new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))])
    : asking;
}

/** Whether the server accepts the code. Waits for a server that is away. */
async function isAccepted() {
  for (let failures = 0; ; failures += 1) {
    try {
      about = await server.about();
      await server.openSession();
      notice("away", null);
      return true;
    } catch (error) {
      if (error instanceof server.Refusal && error.status === 401) return false;
      notice("away", error instanceof server.Refusal ? text("trouble", { why: error.reason }) : text("unreachable"));
      await wait(Math.min(30, 2 ** failures));
    }
  }
}

// MARK: Files

const queue = new Queue({
  get maxSize() { return about.maxSize; }, get lists() { return about.lists; },
  askForCode: (signal) => {
    if (!asking) notice("code", text("codeAgain"));
    return askForCode(signal).then(() => notice("code", null));
  },
});
const rows = new UploadRows(queue);
/** Above this number of waiting files, a folder is searched no further until some are sent. */
const mostWaiting = 2000;

async function take(files) {
  queue.add(folder.url, files);
  while (queue.waiting.length > mostWaiting) await wait(0.5);
}

function looking(isLooking, count) {
  queue.isLooking = isLooking;
  notice("nothing", count === 0 ? text("noFiles") : null, [[text("close"), () => notice("nothing", null)]]);
  planShow();
}

const choices = offerChoices(take, looking);

queue.addEventListener("added", () => {
  const { bytes, sent } = queue.totals();
  if (about.free !== null && bytes - sent > about.free && !queue.isPaused) {
    queue.isPaused = true;
    notice("room", text("noRoom", { chosen: size(bytes - sent), free: size(about.free) }), [[text("sendAnyway"), goOn]]);
  }
  announce(text("announceStart", { n: queue.round.count }));
  keepAwake();
});

function goOn() {
  notice("room", null);
  queue.goOn();
  keepAwake();
}

element("pause-all").onclick = () => {
  if (queue.isPaused) goOn();
  else if (queue.isBusy) queue.pauseAll();
  else {
    queue.clearFinished();
    element("totals").hidden = true;
  }
};

/** Tells of the files of an earlier visit that are not finished. */
async function tellUnfinished() {
  const url = folder.url;
  const records = (await memory.unfinished(url)).filter((record) => !queue.has(record.key));
  if (url !== folder.url) return;
  if (records.length === 0 || !about.receives) return notice("unfinished", null);
  const some = records.slice(0, 3).map((record) => record.path);
  if (records.length > some.length) some.push(text("andMore", { n: records.length - some.length }));
  const known = records.filter((record) => record.handle);
  const again = async () => {
    if (known.length < records.length) return choices.pickFiles();
    for (const { handle } of known) {
      if ((await handle.requestPermission?.({ mode: "read" })) === "denied") return choices.pickFiles();
    }
    const files = [];
    for await (const one of filesOf(known.map((record) => record.handle), known.map((record) => record.path))) files.push(one);
    take(files);
  };
  const canGoOn = known.length === records.length;
  notice("unfinished",
    text("unfinished", { n: records.length, names: some.join(", ") }) + " " + text(canGoOn ? "unfinishedHandles" : "unfinishedHow"),
    [[text(canGoOn ? "goOn" : "chooseAgain"), again],
      [text("forget"), () => memory.forget(records.map((record) => record.key)).then(tellUnfinished)]]);
}
queue.addEventListener("added", () => notices.has("unfinished") && setTimeout(tellUnfinished, 300));

/** A timer: the folder has changed and is read again soon. */
let refreshing = null;

async function refresh() {
  clearTimeout(refreshing);
  refreshing = null;
  folder.refresh();
  about = await server.about().catch(() => about);
  showFacts();
}

queue.addEventListener("done", ({ detail }) => {
  if (detail.folder.startsWith(folder.url)) refreshing ??= setTimeout(refresh, 5000);
});

// MARK: Display

let isPlanned = false;
/** Shows the state soon; many changes become one. */
function planShow() {
  if (isPlanned) return;
  isPlanned = true;
  setTimeout(() => {
    isPlanned = false;
    show();
  }, 200);
}
queue.addEventListener("change", planShow);

let wasBusy = false;
let announcedQuarter = 0;

function show() {
  rows.show();
  const { sent, bytes, count, doneCount } = queue.totals();
  const isBusy = queue.isBusy || queue.isPaused && queue.waiting.length > 0;
  const share = bytes > 0 ? Math.min(1, sent / bytes) : count > 0 ? doneCount / count : 0;
  if (queue.round.count > 0 && (isBusy || wasBusy)) element("totals").hidden = false;
  element("total-bar").value = share;
  const parts = [text("counts", { done: doneCount, n: count })];
  if (isBusy) parts.push(text("sending", { sent: size(sent), size: size(bytes) }));
  if (queue.isLooking) parts.push(text("looking"));
  setText(element("total-count"), isBusy ? parts.join(" · ") : summary(doneCount));
  setText(element("total-rate"), isBusy ? rateText(bytes - sent) : "");
  setText(element("pause-all"), text(queue.isPaused ? "goOn" : isBusy ? "pause" : "close"));
  document.body.classList.toggle("has-totals", !element("totals").hidden);
  document.title = (isBusy ? percent(share) + " – " : "") + about.name;
  const away = [...queue.active].find((item) => item.problem);
  notice("away", away && [...queue.active].every((item) => item.problem) ? away.problem : null);
  if (!queue.isBusy) announcedQuarter = 0;
  const quarter = Math.floor(share * 4);
  if (isBusy && quarter > announcedQuarter) {
    announcedQuarter = quarter;
    announce(text("announcePart", { part: percent(share) }));
  }
  if (wasBusy && !isBusy) {
    announce(summary(doneCount));
    letSleep();
    if (refreshing) refresh();
  }
  wasBusy = isBusy;
}

function rateText(rest) {
  if (queue.isPaused) return text("stoppedAll");
  const rate = queue.bytesPerSecond;
  if (rate < 1) return "";
  return `${size(rate)}/s · ${text("left", { time: duration(rest / rate) })}`;
}

function summary(doneCount) {
  const same = queue.finished.filter((item) => item.outcome !== "sent").length;
  const renamed = queue.finished.filter((item) => item.target !== item.path && item.outcome === "sent").length;
  return [
    doneCount > 0 || queue.failed.size === 0 ? text("allDone", { n: doneCount }) : null,
    queue.failed.size > 0 ? text("doneSome", { n: queue.failed.size }) : null,
    same > 0 ? text("someSame", { n: same }) : null,
    renamed > 0 ? text("someRenamed", { n: renamed }) : null,
  ].filter(Boolean).join(" · ");
}

function showFacts() {
  setText(element("place"), about.receives ? text("sendTo", { name: about.name }) : about.name);
  const facts = [about.free !== null && about.receives ? text("free", { size: size(about.free) }) : null,
    about.until ? text("openUntil", { time: time(about.until) }) : null, about.receives ? null : text("readOnly")];
  setText(element("facts"), facts.filter(Boolean).join(" · "));
}

// MARK: Staying awake

let awake = null;

/** Keeps the screen on while files are sent. Browsers allow that only to pages with HTTPS. */
async function keepAwake() {
  if (!navigator.wakeLock) {
    if (matchMedia("(pointer: coarse)").matches) notice("screen", text("keepOn"), [[text("close"), () => notice("screen", null)]]);
    return;
  }
  if (awake || document.visibilityState !== "visible" || !queue.isBusy || queue.isPaused) return;
  awake = await navigator.wakeLock.request("screen").catch(() => null);
  awake?.addEventListener("release", () => (awake = null));
}

function letSleep() {
  awake?.release();
  notice("screen", null);
}
link.addEventListener("nudge", keepAwake);

addEventListener("beforeunload", (event) => {
  if (!queue.isBusy) return;
  event.preventDefault();
  event.returnValue = true;
});

// MARK: Start

async function start() {
  translatePage();
  const hasCode = server.findCode();
  if (!hasCode || !(await isAccepted())) {
    if (hasCode) setText(element("code-wrong"), text("codeWrong"));
    await askForCode();
    element("place").focus();
  }
  showFacts();
  document.title = about.name;
  element("send").hidden = !about.receives;
  folder = new Folder(tellUnfinished);
  folder.start(about);
  memory.tidy();
}
start();
