/** Where files come from: pickers, the camera, files and folders dropped on the page, and pasted pictures. */

const element = (id) => document.getElementById(id);
/** The files that are handed over at once. */
const batch = 200;

/** Calls `take(files)` with batches of `{file, path, handle}`, and waits for its result, before and after which it calls
 *  `looking(true)` and `looking(false)`. */
export function offerChoices(take, looking) {
  const takeAll = async (found) => {
    looking(true);
    let files = [];
    let count = 0;
    try {
      for await (const one of found) {
        files.push(one);
        count += 1;
        if (files.length === batch || count === 1) {
          await take(files);
          files = [];
        }
      }
    } finally {
      if (files.length > 0) await take(files);
      looking(false, count);
    }
  };
  for (const id of ["files-input", "camera-input", "folder-input"]) {
    element(id).onchange = ({ target }) => {
      takeAll([...target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      target.value = "";
    };
  }
  const pickFiles = async () => {
    if (!("showOpenFilePicker" in window)) return element("files-input").click();
    let handles;
    try {
      handles = await showOpenFilePicker({ multiple: true });
    } catch {
      return;  // The person has closed the picker.
    }
    takeAll(filesOf(handles));
  };
  element("pick-files").onclick = pickFiles;
  element("take-photo").onclick = () => element("camera-input").click();
  element("pick-folder").onclick = () => element("folder-input").click();
  element("take-photo").hidden = !matchMedia("(pointer: coarse)").matches;
  element("pick-folder").hidden = !("webkitdirectory" in element("folder-input"));
  element("drop-hint").hidden = !matchMedia("(any-pointer: fine)").matches;

  const cover = element("drop-cover");
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    cover.hidden = element("send").hidden;
  });
  addEventListener("dragleave", (event) => (cover.hidden ||= !event.relatedTarget));
  addEventListener("drop", (event) => {
    cover.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    // The items are only valid during the event, so all are asked now.
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    takeAll(walk(items.map((item) => ({ handle: item.getAsFileSystemHandle?.(), entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }))));
  });
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    // A picture from the clipboard is always called image.png, and has the current time.
    if (files.length > 0) takeAll(files.map((file) => ({ file, path: file.name || "image.png" })));
  });
  return { pickFiles };
}

/** The files of handles that the browser has given. A file that cannot be read is left out. */
export async function* filesOf(handles, paths) {
  for (const [index, handle] of handles.entries()) {
    const file = await handle.getFile().catch(() => null);
    if (file) yield { file, path: paths?.[index] ?? file.name, handle };
  }
}

async function* walk(dropped) {
  for (const { handle, entry, file } of dropped) {
    const found = await handle?.catch(() => null);
    if (found) yield* walkHandle(found, found.name);
    else if (entry) yield* walkEntry(entry);
    else if (file) yield { file, path: file.name };
  }
}

const byName = (one, other) => (one.name < other.name ? -1 : 1);

async function* walkHandle(handle, path) {
  if (handle.kind === "file") {
    const file = await handle.getFile().catch(() => null);
    if (file) yield { file, path, handle };
    return;
  }
  const children = [];
  for await (const child of handle.values()) children.push(child);
  for (const child of children.sort(byName)) yield* walkHandle(child, `${path}/${child.name}`);
}

async function* walkEntry(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve) => entry.file(resolve, () => resolve(null)));
    if (file) yield { file, path: entry.fullPath.replace(/^\/+/, "") };
    return;
  }
  const reader = entry.createReader();
  const children = [];
  for (;;) {  // The reader gives a part of the folder at a time.
    const part = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (part.length === 0) break;
    children.push(...part);
  }
  for (const child of children.sort(byName)) yield* walkEntry(child);
}
