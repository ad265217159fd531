// Brings the parts together, and tells how far everything is.
import { filesOf, offerChoices, picker } from "./choose.js";
import { Folder } from "./folder.js";
import { element, make, setText } from "./list.js";
import * as memory from "./memory.js";
import { Queue } from "./queue.js";
import { showRows } from "./rows.js";
import * as server from "./server.js";
import { date, duration, percent, size, text, translatePage } from "./text.js";
import { link, wait } from "./tus.js";

let about = null;
let folder = null;
const notices = new Map();

// Shows a message with buttons, or removes it; `actions` are functions by labels.
function notice(id, message, actions = {}) {
  const shown = notices.get(id);
  if (shown?.message === message) return;
  shown?.remove();
  if (shown?.message === element("live").textContent) announce("");
  notices.delete(id);
  if (!message) return;
  const buttons = Object.entries(actions).map(([label, onclick]) => make("button", { textContent: text(label), onclick }));
  const made = make("div", { className: "notice", message }, make("p", { textContent: message }), ...buttons);
  element("notices").append(made);
  notices.set(id, made);
  announce(message);
}

// Screen readers read this.
const announce = (message) => setText(element("live"), message);

let asking = null;

// Shows the field for the code until the server accepts one.
async function askForCode(signal) {
  asking ??= new Promise((resolve) => {
    element("gate").hidden = false;
    if (about) setText(element("code-wrong"), text("codeNew"));
    element("code").focus();
    element("gate").onsubmit = async (event) => {
      event.preventDefault();
      for (const reading of server.readings(element("code").value)) {
        server.setCode(reading);
        if (await isAccepted()) return resolve();
      }
      setText(element("code-wrong"), text("codeWrong"));
      element("code").select();
    };
  });
  const aborted = new Promise((resolve) => signal?.addEventListener("abort", resolve));
  await Promise.race([asking, aborted]);
  if (signal?.aborted) throw signal.reason;
  asking = null;
  element("gate").hidden = true;
}

// Waits for a server that is away.
async function isAccepted() {
  for (let seconds = 1; ; seconds = Math.min(30, seconds * 2)) {
    try {
      about = await server.about();
      notice("away", null);
      return true;
    } catch (error) {
      if (error.status === 401) return false;
      notice("away", text(error.reason ? "trouble" : "unreachable"));
      await wait(seconds);
    }
  }
}

const queue = new Queue({
  get maxSize() { return about.maxSize; },
  get maxTotal() { return about.maxTotal; },
  get lists() { return about.lists; },
  askForCode,
});
const rows = showRows(queue);

async function take(files, choice) {
  queue.add(folder.url, files, choice);
  // A large folder is searched no further.
  while (queue.waiting.length > 2000) await wait(0.5);
}

const pickFiles = offerChoices(take, (isLooking) => queue.look(isLooking));

queue.addEventListener("added", () => {
  hasAgreed = false;
  // What the receiver has of files of an earlier visit is known only once it was asked.
  if (!notices.has("unfinished")) watchRoom();
  element("totals").hidden = false;
  show();
  if (queue.failed.size > 0) announce(summary());
  if (notices.has("unfinished")) setTimeout(tellUnfinished, 300);
  keepAwake();
});

// The person has chosen to go on without enough room.
let hasAgreed = false;

// Asks before the receiver's disk gets full, and goes on when there is room again.
function watchRoom() {
  const rest = queue.rest(about.maxTotal !== null);
  const isEnough = about.free === null || rest <= about.free;
  if (isEnough && notices.has("room")) {
    notice("room", null);
    goOn();
  }
  if (isEnough || hasAgreed || (queue.isPaused && !notices.has("room"))) return;
  queue.pauseAll();
  notice("room", text("noRoom", { rest: size(rest), free: size(about.free) }), { goOn });
}

// When the server has answered last, and what is said if it does not.
let heard = Date.now();
let away = null;
// Seconds until the next question.
let pause = 5;

// Shows what others send and how much room there is, renews links with tickets of an earlier run of the server, and tells a
// server that closes after the visit that somebody is here.
async function look() {
  if (asking || (document.hidden && !queue.isBusy && Date.now() - picker.opened > 300_000)) return;
  const begin = performance.now();
  pause = 5;
  try {
    about = await server.about();
    heard = Date.now();
    away = null;
    showFacts();
    if (queue.isBusy) watchRoom();
    await folder.refresh(true);
    // A long list on a slow link is asked for less often.
    pause = Math.min(20, Math.max(5, (performance.now() - begin) / 200));
  } catch (error) {
    if (error.status === 401) {
      await askForCode();
      return look();
    }
    away = over() ?? text(error.reason ? "trouble" : "unreachable");
  }
  show();
}

async function watch() {
  for (;;) {
    await wait(pause);
    await look();
  }
}

function goOn() {
  hasAgreed = notices.has("room");
  notice("room", null);
  queue.goOn();
  keepAwake();
}

element("pause-all").onclick = () => {
  if (queue.isPaused) return goOn();
  if (queue.isBusy) return queue.pauseAll();
  queue.clearFinished();
  element("totals").hidden = true;
};

// Tells of an earlier visit's files.
async function tellUnfinished() {
  const records = (await memory.unfinished(folder.url)).filter((record) => !queue.has(record.key));
  if (records.length === 0) return notice("unfinished", null);
  const names = records.slice(0, 3).map((record) => record.path).join(", ") + (records.length > 3 ? ` … (${records.length})` : "");
  const forget = () => memory.forget(records.map((record) => record.key)).then(tellUnfinished);
  const goOn = async () => {
    for (const { handle } of records) await handle.requestPermission?.({ mode: "read" });
    for await (const file of filesOf(records)) take([file]);
  };
  const again = records.every((record) => record.handle) ? { goOn } : { pickFiles };
  notice("unfinished", text("unfinished", { names }), { ...again, forget });
}

let planned = null;
queue.addEventListener("change", () => (planned ??= setTimeout(show, 200)));

let wasBusy = false;
let announced = 0;

function show() {
  planned = null;
  rows();
  const { sent, bytes, count, doneCount } = queue.round;
  const { isBusy, isPaused, isLooking } = queue;
  const problems = [...queue.active].map((item) => item.problem);
  const isStuck = problems.length > 0 && !problems.includes(null);
  const share = Math.min(1, bytes > 0 ? sent / bytes : doneCount / count || 0);
  element("total-bar").value = share;
  const progress = [`${doneCount} / ${count}`, text("partly", { sent: size(sent), size: size(bytes) })];
  if (isLooking) progress.push("…");
  setText(element("total-count"), isBusy ? progress.join(" · ") : summary());
  setText(element("total-rate"), isPaused ? text("paused") : isBusy && !isStuck ? rate(bytes - sent) : "");
  setText(element("pause-all"), text(isPaused ? "goOn" : isBusy ? "pause" : "close"));
  document.body.classList.toggle("has-totals", !element("totals").hidden);
  document.title = (isBusy ? percent(share) + " – " : "") + about.name;
  notice("away", asking ? null : isStuck ? over() ?? problems[0] : problems.length > 0 ? null : away);
  // Screen readers tell every quarter only.
  if (isBusy && Math.floor(share * 4) !== announced) announce(progress.join(", "));
  announced = isBusy ? Math.floor(share * 4) : -1;
  if (wasBusy && !isBusy) {
    announce(summary());
    awake?.release();
    notice("screen", null);
    look();
  }
  wasBusy = isBusy;
}

// A message once the receiver has closed as it had told; otherwise undefined.
function over() {
  const { until, once } = about;
  if (until && until < Date.now() / 1000) return text("over", { time: date(until, { timeStyle: "short" }) });
  // It waits longer for files that are not finished.
  if (once && Date.now() - heard > 40_000 && navigator.onLine && !queue.isBusy) return text("closed");
}

function rate(rest) {
  const perSecond = queue.bytesPerSecond;
  return perSecond < 1 ? text("waiting") : `${size(perSecond)}/s · ${text("left", { time: duration(rest / perSecond) })}`;
}

function summary() {
  const { doneCount, same, renamed } = queue.round;
  const failed = queue.failed.size;
  const parts = [text("finished", { n: doneCount }), failed > 0 && text("failed", { n: failed }),
    renamed > 0 && text("renamedCount", { n: renamed }), same > 0 && text("known", { n: same })];
  return parts.filter(Boolean).join(" · ");
}

function showFacts() {
  const { name, free, maxSize, until, once, receives } = about;
  const path = [name, ...(folder?.names ?? []).map(server.decode)].join(" / ");
  setText(element("place"), receives ? text("sendTo", { name: path }) : path);
  const facts = [free !== null && receives && text("free", { size: size(free) }),
    maxSize !== null && receives && text("upTo", { size: size(maxSize) }),
    until && text("openUntil", { time: date(until, { timeStyle: "short", dateStyle: "short" }) }), once && text("once")];
  setText(element("facts"), facts.filter(Boolean).join(" · "));
  element("send").hidden = !receives;
}

// A wake lock.
let awake = null;
let hasTold = false;

async function keepAwake() {
  if (awake || !queue.isBusy || queue.isPaused) return;
  if (navigator.wakeLock) {
    awake = await navigator.wakeLock.request("screen").catch(() => null);
    awake?.addEventListener("release", () => (awake = null));
  } else if (matchMedia("(pointer: coarse)").matches && !hasTold) {
    hasTold = true;
    notice("screen", text("keepOn"), { close: () => notice("screen", null) });
  }
}
link.addEventListener("nudge", keepAwake);

addEventListener("beforeunload", (event) => queue.isBusy && event.preventDefault());

async function start() {
  translatePage();
  const hasCode = server.findCode();
  if (!hasCode || !(await isAccepted())) {
    if (hasCode) setText(element("code-wrong"), text("codeWrong"));
    await askForCode();
    element("place").focus();
  }
  const file = location.pathname.endsWith("/") ? null : await leaveFile();
  showFacts();
  document.title = about.name;
  folder = new Folder(about, () => {
    showFacts();
    tellUnfinished();
  });
  folder.open(location.href);
  watch();
  if (file) location.assign(file);
}

// The address is that of a file, which the server has not given without the code. Makes it that of the folder, and returns
// the file's link: a download leaves the page as it is.
async function leaveFile() {
  const name = server.decode(location.pathname.split("/").pop());
  history.replaceState(null, "", "./");
  const { entries } = await server.list(location.href).catch(() => ({ entries: [] }));
  return entries.find((entry) => entry.name === name)?.url;
}
element("unloaded").remove();
start();
