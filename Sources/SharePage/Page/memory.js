/** Remembers files in IndexedDB, so that a reloaded page knows what is unfinished and what was sent, and makes sure that
 *  only one tab sends a file. All of it works in pages without HTTPS, where Web Locks do not exist. */

const day = 86_400_000;
/** Identifies this page as the owner of the files that it sends. */
const me = Math.random().toString(36).slice(2) + Date.now().toString(36);

/** The same file chosen again has the same key. */
export const keyOf = (folder, path, file) => [folder, path, file.size, file.lastModified].join("\n");

let database = null;
/** Used if the browser has no IndexedDB, as in some private windows: then nothing survives a reload. */
const fallback = new Map();

function opened() {
  database ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open("fullbore", 1);
      request.onupgradeneeded = () => request.result.createObjectStore("files", { keyPath: "key" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return database;
}

/** Runs `work` with the object store in one transaction. Resolves with the value that `work` has set as `result.value`. */
async function transaction(mode, work) {
  const database = await opened();
  const result = {};
  if (database === null) return null;
  return new Promise((resolve) => {
    try {
      const running = database.transaction("files", mode, { durability: "relaxed" });
      work(running.objectStore("files"), result);
      running.oncomplete = () => resolve(result);
      running.onabort = () => resolve(null);  // No room, for example: the file is sent all the same.
    } catch {
      resolve(null);
    }
  });
}

const read = (store, key, then) => (store.get(key).onsuccess = (event) => then(event.target.result));

/** Notes that this page is to send these files, unless they were sent. */
export async function expect(records) {
  const done = await transaction("readwrite", (store) => {
    for (const record of records) {
      read(store, record.key, (known) => {
        if (!known?.isFinished) store.put({ ...known, ...record });
      });
    }
  });
  if (done === null) for (const record of records) fallback.has(record.key) || fallback.set(record.key, record);
  return done !== null;
}

/** Changes the record of a file. */
export async function update(key, changes) {
  const change = (known) => ({ ...known, ...changes, key, time: Date.now() });
  const done = await transaction("readwrite", (store) => read(store, key, (known) => store.put(change(known))));
  if (done === null) fallback.set(key, change(fallback.get(key)));
}

export async function forget(keys) {
  for (const key of keys) fallback.delete(key);
  await transaction("readwrite", (store) => keys.forEach((key) => store.delete(key)));
}

/** Makes this page the owner of the file, unless another page that lives is. Returns the record; null: another page is. */
export async function claim(key) {
  for (;;) {
    const result = await transaction("readwrite", (store, result) =>
      read(store, key, (known) => {
        result.record = known ?? { key };
        if (known?.owner && known.owner !== me && !gone.has(known.owner)) return;
        result.record.owner = me;
        store.put(result.record);
      }));
    if (result === null) return fallback.get(key) ?? { key };
    if (result.record.owner === me) return result.record;
    if (await lives(result.record.owner)) return null;
    gone.add(result.record.owner);
  }
}

/** Lets other pages own the file. */
export async function release(key) {
  await transaction("readwrite", (store) =>
    read(store, key, (known) => {
      if (known?.owner === me) store.put({ ...known, owner: null });
    }));
  channel?.postMessage({ released: key });
}

/** Pages that did not answer. */
const gone = new Set();
const channel = "BroadcastChannel" in window ? new BroadcastChannel("fullbore") : null;
/** Called when another page has released a file. */
export const events = new EventTarget();
const answers = new EventTarget();
if (channel) {
  channel.onmessage = ({ data }) => {
    if (data.ask === me) channel.postMessage({ lives: me });
    if (data.lives) answers.dispatchEvent(new Event(data.lives));
    if (data.released) events.dispatchEvent(new Event("released"));
  };
}

/** Asks another page whether it exists. A page that is frozen does not answer, but neither does it send. */
function lives(owner) {
  if (!channel) return Promise.resolve(false);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), 700);
    answers.addEventListener(owner, () => (clearTimeout(timer), resolve(true)), { once: true });
    channel.postMessage({ ask: owner });
  });
}

/** The files for `folder` that pages which do not exist any more have not finished. */
export async function unfinished(folder) {
  const result = await transaction("readonly", (store, result) => {
    store.getAll().onsuccess = (event) => (result.records = event.target.result);
  });
  const found = (result?.records ?? []).filter((record) => record.folder === folder && !record.isFinished);
  const owners = [...new Set(found.map((record) => record.owner ?? record.page))].filter((owner) => owner && owner !== me);
  for (const owner of await Promise.all(owners.map(async (owner) => ((await lives(owner)) ? null : owner)))) {
    if (owner) gone.add(owner);
  }
  return found.filter((record) => gone.has(record.owner ?? record.page));
}

/** The record of a file that this page begins to send. `handle` exists in some browsers. */
export const newRecord = (item) => ({
  key: item.key, folder: item.folder, path: item.path, size: item.size, page: me, time: Date.now(), handle: item.handle ?? null,
});

/** Deletes what is too old to be of use. */
export function tidy() {
  transaction("readwrite", (store) => {
    store.openCursor().onsuccess = (event) => {
      const cursor = event.target.result;
      if (!cursor) return;
      const { time, isFinished } = cursor.value;
      if (!(Date.now() - time < (isFinished ? 7 : 14) * day)) cursor.delete();
      cursor.continue();
    };
  });
}

/** Notes that a file was sent, and lets other pages know. */
export async function finish(item) {
  const { url, target, folder, path, size } = item;
  await update(item.key, { url, target, folder, path, size, isFinished: true, owner: null, handle: null });
  channel?.postMessage({ released: item.key });
}
