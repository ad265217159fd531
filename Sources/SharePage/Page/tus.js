/** Uploads by tus 1.0: creation, with the bytes of a small file in the same request, PATCH and HEAD. */
import { authorization, Refusal, Unreachable } from "./server.js";

/** A connection on which nothing moves for this many milliseconds is given up. */
const stall = 30_000;
/** When all bytes are sent, the server may need time to compare and save a large file. */
const answerTime = 180_000;

/** Dispatches `nudge` when an interrupted connection may work again: the network is back, or the page is visible. */
export const link = new EventTarget();
const nudge = () => link.dispatchEvent(new Event("nudge"));
addEventListener("online", nudge);
addEventListener("pageshow", nudge);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && nudge());

/** Waits until the time is over, or the link may work again. Throws when `signal` is aborted. */
export function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      link.removeEventListener("nudge", end);
      signal?.removeEventListener("abort", end);
      signal?.aborted ? reject(signal.reason) : resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    link.addEventListener("nudge", end);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** One request. XMLHttpRequest, since fetch does not tell how much of the body is sent. The body is a slice of a file,
 *  which the browser reads while it sends. `progressed` gets the number of bytes sent. */
function exchange(method, url, headers, body, signal, progressed) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const xhr = new XMLHttpRequest();
    let moved = performance.now();
    let isSent = body === null;
    const timer = setInterval(() => performance.now() - moved > (isSent && body ? answerTime : stall) && xhr.abort(), 1000);
    const nudged = () => !isSent && performance.now() - moved > 4000 && xhr.abort();
    const abort = () => xhr.abort();
    link.addEventListener("nudge", nudged);
    signal?.addEventListener("abort", abort);
    xhr.upload.onprogress = (event) => {
      moved = performance.now();
      progressed?.(event.loaded);
    };
    xhr.upload.onload = () => {
      moved = performance.now();
      isSent = true;
      progressed?.(body.size, true);
    };
    xhr.onloadend = () => {
      clearInterval(timer);
      link.removeEventListener("nudge", nudged);
      signal?.removeEventListener("abort", abort);
      if (signal?.aborted) reject(signal.reason);
      else if (xhr.status === 0) reject(new Unreachable());
      else if (xhr.status >= 200 && xhr.status < 300) resolve(xhr);
      else reject(new Refusal(xhr.status, xhr.responseText.trim().slice(0, 300), xhr.getResponseHeader("Retry-After")));
    };
    xhr.open(method, url);
    xhr.setRequestHeader("Tus-Resumable", "1.0.0");
    if (authorization()) xhr.setRequestHeader("Authorization", authorization());
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.send(body);
  });
}

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** Upload-Metadata for a file whose path below the folder is `path`. */
export function metadata(path, file) {
  const values = {
    filename: path.slice(path.lastIndexOf("/") + 1), relativePath: path,
    mtime: (file.lastModified / 1000).toFixed(3),
  };
  if (file.type) values.filetype = file.type;
  return Object.entries(values).map(([name, value]) => `${name} ${base64(value)}`).join(",");
}

const bytesType = { "Content-Type": "application/offset+octet-stream" };
const isUnchanged = (xhr) => xhr.getResponseHeader("Upload-Outcome") === "unchanged";
const count = (xhr, name) => {
  const text = xhr.getResponseHeader(name);
  if (text === null || !/^\d+$/.test(text)) throw new Refusal(502, `the response has no ${name}`);
  return Number(text);
};

/** Creates an upload below `folder`. `body` is the whole file, or null. Returns its URL, and whether the file already had
 *  these bytes. */
export async function create(folder, metadata, length, body, signal, progressed) {
  const headers = { "Upload-Length": String(length), "Upload-Metadata": metadata, ...(body ? bytesType : {}) };
  const xhr = await exchange("POST", folder, headers, body, signal, progressed);
  const place = xhr.getResponseHeader("Location");
  if (place === null) throw new Refusal(502, "the response has no Location");
  return { url: new URL(place, folder).href, unchanged: isUnchanged(xhr) };
}

/** Sends `body` from byte `offset` on. Returns the upload's new offset. */
export async function patch(url, offset, body, signal, progressed) {
  const xhr = await exchange("PATCH", url, { "Upload-Offset": String(offset), ...bytesType }, body, signal, progressed);
  return { offset: count(xhr, "Upload-Offset"), unchanged: isUnchanged(xhr) };
}

/** The number of bytes that the server has; null: the upload is gone. */
export async function offset(url, signal) {
  try {
    return count(await exchange("HEAD", url, {}, null, signal), "Upload-Offset");
  } catch (error) {
    if (error instanceof Refusal && [403, 404, 410].includes(error.status)) return null;
    throw error;
  }
}

/** Deletes what the server has of an unfinished upload. Failures do not matter: it expires. */
export const terminate = (url) => exchange("DELETE", url, {}, null).catch(() => {});
