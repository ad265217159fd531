// The code, facts about the server, and lists of folders.

// The shared folder, perhaps behind a reverse proxy with a path prefix.
export const root = new URL(document.documentElement.dataset.base, location.href).href;
const storageKey = "fullbore code " + root;

// An error status with the server's reason, in English. `kind`: one for which the page may have a text, or null.
export class Refusal extends Error {
  constructor(status, reason, retryAfter, kind = null) {
    super(`${status} ${reason}`);
    Object.assign(this, { status, kind, reason: reason.trim().slice(0, 300) || String(status), retryAfter: Number(retryAfter) || 0 });
  }
}

// No response arrived.
export class Unreachable extends Error {}

let code = "";
export const authorization = () => (code ? { Authorization: "Bearer " + code } : {});

// Takes the code out of the address and its history, or the one of an earlier visit.
export function findCode() {
  try {
    code = localStorage.getItem(storageKey) ?? "";
  } catch {}  // Without storage, a reload asks for the code.
  if (location.hash.length > 1) {
    setCode(decode(location.hash.slice(1)));
    history.replaceState(null, "", location.pathname + location.search);
  }
  return code !== "";
}

export function setCode(value) {
  code = value;
  try {
    localStorage.setItem(storageKey, value);
  } catch {}
}

// The codes that may be meant: in the form of the server's own ones, and as typed.
export function readings(typed) {
  const plain = typed.toLowerCase().replace(/[\s\u2010-\u2015-]/g, "");
  const grouped = /^[a-z0-9]{12}$/.test(plain) ? [plain.replace(/(....)(....)(....)/, "$1-$2-$3")] : [];
  return [...grouped, typed.trim()].filter((text) => /^[!-~]+$/.test(text));
}

export function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;  // A name that is not UTF-8.
  }
}

async function request(method, url, headers = {}) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), 30_000);
  try {
    const options = { method, headers: { ...headers, ...authorization() }, signal: control.signal, cache: "no-store" };
    const response = await fetch(url, options);
    const text = await response.text();
    if (!response.ok && response.status !== 304) throw new Refusal(response.status, text, response.headers.get("Retry-After"));
    return { headers: response.headers, text };
  } catch (error) {
    throw error instanceof Refusal ? error : new Unreachable();
  } finally {
    clearTimeout(timer);
  }
}

// null: what has the ETag `tag` is the same.
async function read(url, tag = "") {
  const { headers, text } = await request("GET", url, { Accept: "application/json", "If-None-Match": tag });
  return text ? { ...JSON.parse(text), tag: headers.get("ETag") } : null;
}

// `name`, `free`, `maxSize`, `maxTotal`, `receives`, `lists`, `once`, and `until` by the clock of this device, or null.
export async function about() {
  const told = await read(root + ".fullbore-page/about");
  return { ...told, until: told.left === null ? null : Date.now() / 1000 + told.left };
}

// A part of a list: `entries` and `next`, which is `after` for the next part.
export const list = (folder, after, tag) => read(folder + (after ? "?after=" + after : ""), tag);

// Whether a published file has the length and the time of `file`, which it was sent with. Times are whole seconds, and every
// second one on some disks.
export async function isThere(folder, path, file) {
  try {
    const { headers } = await request("HEAD", folder + path.split("/").map(encodeURIComponent).join("/"));
    const time = Date.parse(headers.get("Last-Modified"));
    return Number(headers.get("Content-Length")) === file.size && Math.abs(time - file.lastModified) < 2000;
  } catch (error) {
    if (error.status > 401) return false;
    throw error;
  }
}
