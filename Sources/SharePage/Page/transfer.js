// Sends one file, and goes on after every interruption.
import * as memory from "./memory.js";
import { isThere, Refusal, Unreachable } from "./server.js";
import { refusal, size, text } from "./text.js";
import * as tus from "./tus.js";

const MiB = 1 << 20;
// Files up to this size take one request.
const small = 4 * MiB;
const [leastChunk, mostChunk] = [MiB, 1024 * MiB];
// In seconds. The link is idle after each chunk; a proxy that collects bodies loses at most this much in a cut.
const chunkTime = 60;

// Refusals that another attempt with this file cannot change.
const final = ["reserved-name", "long-name", "too-large", "beyond-total", "read-only"];

// Only a person can help, whom the message is for. `kind`: of the refusal, if the server has refused the file.
export class Failed extends Error {
  constructor(message, isRefused = false, kind = null) {
    super(message);
    Object.assign(this, { isRefused, isFinal: final.includes(kind) });
  }
}

// Returns "sent", "same" if the server had these bytes under this name, "skipped" if they were sent earlier, or
// "elsewhere" if another tab has taken the file over. Throws `Failed` or the signal's reason.
export async function transfer(item, context, signal) {
  let failures = 0;
  for (let reached = item.offset; ; failures += 1) {
    try {
      return await attempt(item, context, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (item.offset > reached) failures = 0;
      reached = item.offset;
      await recover(item, error, context, signal, failures);
    }
  }
}

async function attempt(item, context, signal) {
  const show = (state) => {
    item.state = state;
    context.changed();
  };
  // Asked before each request: even a HEAD would interrupt the other tab.
  if (!(await memory.isMine(item.key))) return "elsewhere";
  if (item.wasSent && context.lists && (await isThere(item.folder, item.target, item.file))) return "skipped";
  if (item.url) {
    const offset = await tus.offset(item.url, signal);
    if (offset === item.size) return item.wasSent ? "skipped" : "sent";
    if (offset === null) item.url = null;
    item.offset = offset ?? 0;
    context.progressed(item, item.offset, false);
  }
  if (item.wasSent) {
    // It is not there any more, or this is another receiver.
    const fresh = { target: item.path, url: item.url, isFinished: false };
    Object.assign(item, fresh, { wasSent: false });
    await memory.update(item.key, fresh);
    memory.expect([item]);
  }
  item.problem = null;
  show("sending");
  let isUnchanged = false;
  if (!item.url) isUnchanged = await create(item, context, signal, show);
  while (item.offset < item.size) {
    if (!(await memory.isMine(item.key))) return "elsewhere";
    const begin = performance.now();
    const start = item.offset;
    context.progressed(item, start);
    isUnchanged = await patch(item, context, signal, show);
    const rate = (item.offset - start) / (performance.now() - begin) * 1000;
    item.chunk = Math.round(Math.max(leastChunk, Math.min(mostChunk, item.chunk * 4, rate * chunkTime)));
  }
  return isUnchanged && !item.isRepeated ? "same" : "sent";
}

async function create(item, context, signal, show) {
  // A refusal before the body is sent may look like a broken connection: the next request has no body.
  const body = item.size > 0 && item.size <= small && !item.isRepeated ? item.file : null;
  item.offset = 0;
  try {
    const { url, unchanged } = await tus.create(item.folder, item.target, item.file, body, signal, (sent, isAll) => {
      context.progressed(item, sent);
      if (isAll) show("saving");
    });
    item.url = url;
    if (body) item.offset = item.size;
    else await memory.update(item.key, { url, target: item.target });
    return unchanged;
  } catch (error) {
    if (error instanceof Unreachable) item.isRepeated = true;
    throw error;
  }
}

async function patch(item, context, signal, show) {
  const start = item.offset;
  const end = Math.min(item.size, start + item.chunk);
  try {
    const { offset, unchanged } = await tus.patch(item.url, start, item.file.slice(start, end), signal, (sent, isAll) => {
      context.progressed(item, start + sent);
      if (isAll && end === item.size) show("saving");
    });
    if (!(offset > start)) throw new Unreachable();
    item.offset = offset;
    return unchanged;
  } catch (error) {
    if (error instanceof Unreachable) item.isRepeated = true;
    if (![404, 409, 410].includes(error.status)) throw error;
    if (!(await memory.isMine(item.key))) throw new Unreachable();
    // The server drops a complete upload whose name is taken; else another request has moved it.
    const isGone = (await tus.offset(item.url, signal)) === null;
    throw isGone && end === item.size && error.status === 409 ? error : new Unreachable();
  }
}

// Waits for the next attempt, or throws `Failed`.
async function recover(item, error, context, signal, failures) {
  const pause = (problem, seconds) => {
    // What was refused is not there.
    if (error instanceof Refusal) context.progressed(item, item.offset, false);
    Object.assign(item, { state: "retrying", problem });
    context.changed();
    return tus.wait(seconds, signal);
  };
  const delay = failures === 0 ? 0.3 : Math.min(30, 2 ** (failures - 1));
  if (error instanceof Unreachable) {
    if (!(await isReadable(item))) throw new Failed(text("unreadable"));
    return pause(text(navigator.onLine ? "unreachable" : "offline"), delay);
  }
  const { status, kind, reason, message, retryAfter } = error;
  if (status === 409 && kind !== "folder-taken" && item.tries < 20) {  // Other bytes have the name.
    context.names.end(item, false);
    do context.names.next(item);
    while (!context.names.reserve(item));
    item.isRepeated = false;
    return context.progressed(item, 0);
  }
  if (status === 401) return context.askForCode(signal);
  if (status === 507) return pause(text(context.maxTotal ? "totalFull" : "full", { size: size(context.maxTotal) }), Math.max(retryAfter, 10));
  if (status >= 500 || [408, 425, 429].includes(status)) return pause(text("trouble"), Math.max(retryAfter, delay));
  throw new Failed(text("refused", { why: refusal(kind) ?? reason ?? message }), true, kind);
}

// An unreadable file looks like a broken connection.
async function isReadable({ file, offset, size }) {
  const byte = file.slice(offset, offset + 1);
  return byte.arrayBuffer().then(() => size > offset || size === 0, () => false);
}
