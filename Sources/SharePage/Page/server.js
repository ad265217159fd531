/** Requests to the server other than uploads: the code, what the server says about itself, and lists of folders. */

/** The URL of the served folder. The server may be behind a reverse proxy that adds a path prefix. */
export const root = new URL(document.documentElement.dataset.base, location.href).href;
const own = (name) => new URL(".fullbore-page/" + name, root).href;
const storageKey = "fullbore code " + root;

/** The server answered with an error status. `reason` is its message in English. */
export class Refusal extends Error {
  constructor(status, reason, retryAfter) {
    super(`${status} ${reason}`);
    this.status = status;
    this.reason = reason;
    this.retryAfter = Number(retryAfter) || 0;
  }
}

/** No response arrived: the network or the server is away. */
export class Unreachable extends Error {}

let code = "";

/** Takes the code from the address's fragment, or the one that an earlier visit kept. The fragment is removed, so that
 *  the code is not in the history or in a photo of the screen. */
export function findCode() {
  code = stored() ?? "";
  if (location.hash.length > 1) {
    try {
      code = decodeURIComponent(location.hash.slice(1));
    } catch {
      code = location.hash.slice(1);
    }
    history.replaceState(history.state, "", location.pathname + location.search);
    keep();
  }
  return code !== "";
}

/** The forms of a code that a person may have meant: in the form in which the server shows its own codes, and as typed. */
export function readings(typed) {
  const plain = typed.toLowerCase().replace(/[\s\u2010-\u2015-]/g, "");
  const grouped = /^[a-z0-9]{12}$/.test(plain) ? plain.replace(/(....)(....)(....)/, "$1-$2-$3") : typed.trim();
  return [...new Set([grouped, typed.trim()])].filter((text) => /^[\x21-\x7e]+$/.test(text));
}

export function setCode(value) {
  code = value;
  keep();
}

export const authorization = () => (code === "" ? null : "Bearer " + code);

function stored() {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;  // The browser forbids storage; the code is asked for again after a reload.
  }
}

function keep() {
  try {
    localStorage.setItem(storageKey, code);
  } catch {}  // As above.
}

/** Throws `Refusal` and `Unreachable`. `seconds` limits the time until the response's head. */
export async function request(method, url, headers = {}, seconds = 30) {
  if (authorization()) headers.Authorization = authorization();
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), seconds * 1000);
  let response;
  try {
    response = await fetch(url, { method, headers, signal: control.signal, cache: "no-store", redirect: "error" });
  } catch {
    throw new Unreachable();
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  const reason = method === "HEAD" ? "" : (await response.text().catch(() => "")).trim().slice(0, 300);
  throw new Refusal(response.status, reason, response.headers.get("Retry-After"));
}

async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new Unreachable();  // The connection broke in the middle of the response.
  }
}

/** What the server says about itself: `name`, `free`, `maxSize`, `receives`, `lists`, `downloads`, `until`. */
export const about = async () => json(await request("GET", own("about")));

/** Makes a cookie with which links and images work, as they cannot send the code in a header. */
export const openSession = () => request("POST", own("session"));

/** A part of the folder's list: `entries` and `next`, the name after which the next part begins. */
export const list = async (folder, after) =>
  json(await request("GET", folder + (after === null ? "" : "?after=" + encodeURIComponent(after)), { Accept: "application/json" }));

/** The length of a published file; null: there is none, or this server does not say. */
export async function lengthOf(url) {
  try {
    const length = (await request("HEAD", url)).headers.get("Content-Length");
    return length === null ? null : Number(length);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** The URL of `path`, whose components are names, below `folder`. */
export const urlOf = (folder, path) => folder + path.split("/").map(encodeURIComponent).join("/");
