// The requests of tus 1.0.
import { authorization, Refusal, Unreachable } from "./server.js";

// A connection is given up if nothing moves for this time, in ms.
const stall = 30_000;
// The server may need time to compare and save a large file.
const answerTime = 180_000;

// Dispatches `nudge` when a connection may work again.
export const link = new EventTarget();
const nudge = () => document.visibilityState === "visible" && link.dispatchEvent(new Event("nudge"));
addEventListener("online", nudge);
document.addEventListener("visibilitychange", nudge);

// Waits for the time or a nudge. Throws when `signal` is aborted.
export async function wait(seconds, signal) {
  await new Promise((resolve) => {
    const end = () => {
      link.removeEventListener("nudge", end);
      resolve();
    };
    setTimeout(end, seconds * 1000);
    link.addEventListener("nudge", end);
    signal?.addEventListener("abort", end);
  });
  signal?.throwIfAborted();
}

// `fetch` cannot tell how much of the body is sent. The browser reads `body`, a slice of a file, while it sends it.
function exchange(method, url, headers, body, signal, progressed) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const xhr = new XMLHttpRequest();
    let moved = performance.now();
    let isSent = body === null;
    const abortAfter = (time) => performance.now() - moved > time && xhr.abort();
    const timer = setInterval(() => abortAfter(isSent && body ? answerTime : stall), 1000);
    const nudged = () => isSent || abortAfter(4000);
    const abort = () => xhr.abort();
    link.addEventListener("nudge", nudged);
    signal?.addEventListener("abort", abort);
    const progress = ({ loaded, type }) => {
      moved = performance.now();
      isSent = type === "load";
      progressed?.(isSent ? body.size : loaded, isSent);
    };
    xhr.upload.onprogress = progress;
    xhr.upload.onload = progress;
    xhr.onloadend = () => {
      clearInterval(timer);
      link.removeEventListener("nudge", nudged);
      signal?.removeEventListener("abort", abort);
      if (signal?.aborted) reject(signal.reason);
      // Without its field, this is no answer of the receiver: a network that wants a login answers everything.
      else if (!xhr.getResponseHeader("Tus-Resumable") && (xhr.status < 400 || [403, 404, 409, 410].includes(xhr.status))) reject(new Unreachable());
      else if (xhr.status < 300) resolve(xhr);
      else reject(new Refusal(xhr.status, xhr.responseText, xhr.getResponseHeader("Retry-After"), xhr.getResponseHeader("Fullbore-Error")));
    };
    xhr.open(method, url);
    const all = { "Tus-Resumable": "1.0.0", ...authorization(), ...headers };
    if (body) all["Content-Type"] = "application/offset+octet-stream";
    for (const name in all) xhr.setRequestHeader(name, all[name]);
    xhr.send(body);
  });
}

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const isUnchanged = (xhr) => xhr.getResponseHeader("Upload-Outcome") === "unchanged";
const offsetIn = (xhr) => Number(xhr.getResponseHeader("Upload-Offset") ?? NaN);

// Creates an upload; `body` is the file or null. `unchanged`: the server had these bytes under this name.
export async function create(folder, path, file, body, signal, progressed) {
  const metadata = `filename ${base64(path.split("/").pop())},relativePath ${base64(path)},filetype ${base64(file.type)},`
    + `mtime ${base64((file.lastModified / 1000).toFixed(3))}`;
  const headers = { "Upload-Length": file.size, "Upload-Metadata": metadata };
  const xhr = await exchange("POST", folder, headers, body, signal, progressed);
  return { url: new URL(xhr.getResponseHeader("Location"), folder).href, unchanged: isUnchanged(xhr) };
}

export async function patch(url, start, body, signal, progressed) {
  const xhr = await exchange("PATCH", url, { "Upload-Offset": start }, body, signal, progressed);
  return { offset: offsetIn(xhr), unchanged: isUnchanged(xhr) };
}

// null: the upload is gone.
export async function offset(url, signal) {
  try {
    return offsetIn(await exchange("HEAD", url, {}, null, signal));
  } catch (error) {
    if ([403, 404, 410].includes(error.status)) return null;
    throw error;
  }
}

// Without success, the upload expires.
export const terminate = (url) => exchange("DELETE", url, {}, null).catch(() => {});
