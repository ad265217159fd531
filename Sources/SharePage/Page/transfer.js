/** Sends one file, with endless patience: it goes on after every interruption until the file is sent or refused. */
import * as memory from "./memory.js";
import { lengthOf, Refusal, Unreachable, urlOf } from "./server.js";
import { size, text } from "./text.js";
import * as tus from "./tus.js";

const MiB = 1 << 20;
/** Files up to this size are sent in the request that creates the upload. */
const small = 4 * MiB;
const chunkBounds = [MiB, 256 * MiB];
/** The time that one chunk should take, in seconds. */
const chunkTime = 8;

/** The file cannot be sent unless a person does something; the message is for that person. */
export class Failed extends Error {}

/** The name is taken by other bytes. */
class NameTaken extends Error {}

/** Returns "sent", "same" if the server had the same bytes under this name, or "skipped" if an earlier visit sent the
 *  file. Throws `Failed`, or the signal's reason. `context` has `names`, `lists`, `progressed(item, bytes)`,
 *  `changed(item)` and `askForCode()`. */
export async function transfer(item, context, signal) {
  let failures = 0;
  let reached = item.offset;
  for (;;) {
    try {
      return await attempt(item, context, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (item.offset > reached) failures = 0;
      reached = item.offset;
      await recover(item, error, context, signal, failures);
      failures += 1;
      if (signal.aborted) throw signal.reason;
    }
  }
}

async function attempt(item, context, signal) {
  const show = (state) => {
    item.state = state;
    context.changed(item);
  };
  if (item.wasSent) {
    show("checking");
    if (await isStillThere(item, context, signal)) return "skipped";
    item.wasSent = false;
    item.url = null;
  }
  if (item.url) {
    if (item.state !== "sending") show("checking");
    const offset = await tus.offset(item.url, signal);
    if (offset === item.size) return "sent";
    if (offset === null) item.url = null;
    item.offset = offset ?? 0;
    context.progressed(item, item.offset);
  }
  item.problem = null;
  show("sending");
  if (!item.url) {
    const unchanged = await create(item, context, signal, show);
    if (item.offset === item.size) return unchanged && !item.isRepeated ? "same" : "sent";
  }
  for (;;) {
    const begin = performance.now();
    const start = item.offset;
    const end = Math.min(item.size, start + item.chunk);
    const unchanged = await patch(item, end, context, signal, show);
    if (item.offset === item.size) return unchanged && !item.isRepeated ? "same" : "sent";
    adaptChunk(item, (item.offset - start) / Math.max(1, performance.now() - begin) * 1000);
  }
}

/** Chunks are as large as the link can move in a few seconds: an interruption in a proxy costs little, and the responses
 *  take no time that matters. */
function adaptChunk(item, bytesPerSecond) {
  const wanted = bytesPerSecond * chunkTime;
  item.chunk = Math.round(Math.min(chunkBounds[1], Math.max(chunkBounds[0], Math.min(wanted, item.chunk * 4))));
}

async function create(item, context, signal, show) {
  // A request that is refused before its body is sent may look like a broken connection. So the second try sends no body.
  const body = item.size <= small && item.size > 0 && !item.isCut ? item.file : null;
  item.offset = 0;
  const metadata = tus.metadata(item.target, item.file);
  try {
    const created = await tus.create(item.folder, metadata, item.size, body, signal, (sent, isAll) => {
      context.progressed(item, sent);
      if (isAll) show("saving");
    });
    item.url = created.url;
    if (body || item.size === 0) item.offset = item.size;
    else await memory.update(item.key, { url: item.url, target: item.target });
    return created.unchanged;
  } catch (error) {
    if (error instanceof Unreachable && body) item.isCut = item.isRepeated = true;
    if (error instanceof Refusal && error.status === 409) throw new NameTaken(error.reason);
    throw error;
  }
}

async function patch(item, end, context, signal, show) {
  const start = item.offset;
  try {
    const result = await tus.patch(item.url, start, item.file.slice(start, end), signal, (sent, isAll) => {
      context.progressed(item, start + sent);
      if (isAll && end === item.size) show("saving");
    });
    item.offset = result.offset;
    context.progressed(item, item.offset);
    return result.unchanged;
  } catch (error) {
    if (error instanceof Unreachable) item.isRepeated = true;
    if (error instanceof Refusal && [404, 409, 410].includes(error.status)) {
      const offset = await tus.offset(item.url, signal);
      // The server drops an upload that has all its bytes and whose name is taken by others.
      if (offset === null && error.status === 409 && end === item.size) throw new NameTaken(error.reason);
      if (offset === null) item.url = null;
      throw new Unreachable();  // Another request has moved the upload: the next attempt asks again.
    }
    throw error;
  }
}

/** Whether the server still has what an earlier visit sent. */
async function isStillThere(item, context, signal) {
  if (context.lists) return (await lengthOf(urlOf(item.folder, item.target))) === item.size;
  return item.url !== null && (await tus.offset(item.url, signal)) === item.size;
}

/** Waits until the next attempt makes sense, or throws `Failed`. */
async function recover(item, error, context, signal, failures) {
  const pause = async (problem, seconds) => {
    item.state = "retrying";
    item.problem = problem;
    context.changed(item);
    await tus.wait(seconds, signal);
  };
  // A single interruption costs little; a server that stays away is asked seldom.
  const delay = failures === 0 ? 0.3 : Math.min(30, 2 ** (failures - 1));
  if (error instanceof Unreachable) {
    if (!(await isReadable(item))) throw new Failed(text("unreadable"));
    return pause(text(navigator.onLine ? "unreachable" : "offline"), delay);
  }
  if (error instanceof NameTaken) {
    if (item.tries > 20) throw new Failed(text("noName", { why: error.message }));
    context.names.end(item, false);
    context.names.next(item);
    while (!context.names.reserve(item)) context.names.next(item);
    item.isRepeated = false;
    return context.progressed(item, 0);
  }
  if (!(error instanceof Refusal)) throw error;
  const { status, reason, retryAfter } = error;
  if (status === 401) {
    item.state = "retrying";
    item.problem = null;
    context.changed(item);
    return context.askForCode(signal);
  }
  if (status === 507) return pause(text("full"), Math.max(retryAfter, 10));
  if (status >= 500 || [408, 425, 429].includes(status)) {
    return pause(text("trouble", { why: reason || String(status) }), Math.max(retryAfter, delay));
  }
  throw new Failed(words(status, reason, item, context));
}

function words(status, reason, item, context) {
  if (status === 413) {
    const limit = context.maxSize;
    return limit !== null && item.size > limit ? text("tooLarge", { size: size(limit) }) : text("tooLargeAll", { why: reason });
  }
  if ([400, 414, 431].includes(status)) return text("badName", { why: reason });
  return status === 403 ? text("forbidden", { why: reason }) : text("refused", { status: String(status), why: reason });
}

/** Whether the browser can still read the file. A request whose file is gone fails as if the connection were broken. */
async function isReadable(item) {
  if (item.size === 0) return true;
  try {
    const start = Math.min(item.offset, item.size - 1);
    return (await item.file.slice(start, start + 1).arrayBuffer()).byteLength === 1;
  } catch {
    return false;
  }
}
