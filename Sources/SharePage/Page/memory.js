// Remembers which files are unfinished or sent, and lets only one tab send a file; Web Locks would need HTTPS.

const day = 86_400_000;
// This page, as an owner of files.
const me = Math.random().toString(36).slice(2);
// The same file chosen again has the same key.
export const keyOf = (folder, path, file) => [folder, path, file.size, file.lastModified].join("\n");

// null: a private window, where nothing is remembered.
const database = new Promise((resolve) => {
  const request = indexedDB.open("fullbore", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("files", { keyPath: "key" });
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => resolve(null);
}).catch(() => null);

// Resolves with the `value` that `work` has set, or null. A failure does not matter: the file is sent all the same.
async function transaction(work) {
  const result = { value: null };
  const opened = await database;
  await new Promise((resolve) => {
    const running = opened.transaction("files", "readwrite", { durability: "relaxed" });
    work(running.objectStore("files"), result);
    running.oncomplete = running.onabort = resolve;
  }).catch(() => {});
  return result.value;
}

const read = (store, key, then) => (store.get(key).onsuccess = ({ target }) => then(target.result));

// Notes that this page is to send these files, unless they were sent.
export const expect = (items) =>
  transaction((store) => {
    for (const { key, folder, path, size, handle = null } of items) {
      read(store, key, (known) => known?.isFinished || store.put({ ...known, key, folder, path, size, handle, page: me, time: Date.now() }));
    }
  });

// Changes the record of a file that this page sends.
export const update = (key, changes) =>
  transaction((store) => read(store, key, (known) => known?.owner === me && store.put({ ...known, ...changes })));

// Whether no other page has taken the file over, which happens while this page is frozen.
export const isMine = (key) =>
  transaction((store, result) => read(store, key, (known) => (result.value = !known || known.owner === me))).then((value) => value ?? true);

export const forget = (keys) => transaction((store) => keys.forEach((key) => store.delete(key)));

// Makes this page the owner. Returns the record; null: another page sends the file.
export async function claim(key) {
  for (;;) {
    const record = await transaction((store, result) =>
      read(store, key, (known) => {
        result.value = known ?? {};
        if (known?.owner && known.owner !== me && !gone.has(known.owner)) return;
        store.put((result.value = { ...known, key, owner: me }));
      }));
    if (!record || record.owner === me) return record ?? {};
    if (await lives(record.owner)) return null;
  }
}

export async function release(key, changes = {}) {
  await update(key, { ...changes, owner: null });
  channel.postMessage({ released: key });
}

// Dispatches `released` when another page has released a file, and the ids of pages that answer.
export const events = new EventTarget();
const gone = new Set();
const channel = new BroadcastChannel("fullbore");
channel.onmessage = ({ data }) => {
  if (data.ask === me) channel.postMessage({ lives: me });
  gone.delete(data.lives);
  events.dispatchEvent(new Event(data.released ? "released" : data.lives ?? "asked"));
};

// A frozen page does not answer, but neither does it send. It answers when it goes on.
async function lives(page) {
  const answer = new Promise((resolve) => {
    setTimeout(resolve, 1000, false);
    events.addEventListener(page, () => resolve(true), { once: true });
  });
  channel.postMessage({ ask: page });
  if (!(await answer)) gone.add(page);
  return answer;
}

// The files for `folder` that closed pages have not finished. Forgets what is old.
export async function unfinished(folder) {
  const all = (await transaction((store, result) => (store.getAll().onsuccess = ({ target }) => (result.value = target.result)))) ?? [];
  const isOld = ({ time, isFinished }) => !(Date.now() - time < (isFinished ? 7 : 14) * day);
  forget(all.filter(isOld).map((record) => record.key));
  const found = all.filter((record) => record.folder === folder && !record.isFinished && !isOld(record));
  await Promise.all([...new Set(found.map((record) => record.page))].map((page) => page !== me && lives(page)));
  return found.filter((record) => gone.has(record.page));
}
