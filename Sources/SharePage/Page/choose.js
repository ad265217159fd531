// Where files come from: pickers, the camera, drops and pastes.

import { element } from "./list.js";

// Without HTTPS, Chromium 156 has getAsFileSystemHandle, and crashes if it is called.
const hasHandles = isSecureContext && "showOpenFilePicker" in window;

// When a picker was opened, in ms since 1970; 0: it is closed.
export const picker = { opened: 0 };

// Calls `take` with batches of `{file, path, handle}` and the choice that they are of, and `looking` before and after that.
// Returns a function that opens the picker.
export function offerChoices(take, looking) {
  const takeAll = async (found) => {
    if (element("send").hidden) return;
    looking(true);
    const choice = {};
    let files = [];
    let wanted = 1;  // The first file is sent at once.
    for await (const one of found) {
      files.push(one);
      if (files.length < wanted) continue;
      await take(files, choice);
      files = [];
      wanted = 200;
    }
    if (files.length > 0) await take(files, choice);
    looking(false);
  };
  for (const id of ["files-input", "camera-input", "folder-input"]) {
    element(id).onclick = () => (picker.opened = Date.now());
    element(id).onchange = ({ target }) => {
      picker.opened = 0;
      takeAll([...target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      target.value = "";
    };
  }
  const pickFiles = async () => {
    if (!hasHandles) return element("files-input").click();
    const handles = await showOpenFilePicker({ multiple: true }).catch(() => []);
    takeAll(filesOf(handles.map((handle) => ({ handle }))));
  };
  element("pick-files").onclick = pickFiles;
  element("take-photo").onclick = () => element("camera-input").click();
  element("pick-folder").onclick = () => element("folder-input").click();
  element("take-photo").hidden = !matchMedia("(pointer: coarse)").matches;
  element("pick-folder").hidden = !("webkitdirectory" in element("folder-input"));
  element("drop-hint").hidden = !matchMedia("(any-pointer: fine)").matches;

  const cover = element("drop-cover");
  const drag = (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    cover.hidden = event.type === "drop" || element("send").hidden;
  };
  addEventListener("dragenter", drag);
  addEventListener("dragover", drag);
  addEventListener("dragleave", (event) => (cover.hidden ||= !event.relatedTarget));
  addEventListener("drop", (event) => {
    drag(event);
    // The items are valid only during the event.
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    takeAll(walk(items.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile(), handle: hasHandles && item.getAsFileSystemHandle() }))));
  });
  addEventListener("paste", ({ clipboardData }) => {
    const files = [...(clipboardData?.files ?? [])];
    if (files.length > 0) takeAll(files.map((file) => ({ file, path: file.name })));
  });
  return pickFiles;
}

// Leaves out what cannot be read.
export async function* filesOf(found) {
  for (const { handle, path } of found) {
    const file = await handle.getFile().catch(() => null);
    if (file) yield { file, path: path ?? file.name, handle };
  }
}

async function* walk(found) {
  for (const { entry, file, handle } of found) {
    if (entry?.isDirectory) yield* walk(await childrenOf(entry));
    else {
      const path = entry?.fullPath.slice(1) || file.name;
      const read = file ?? (await new Promise((resolve) => entry.file(resolve, () => resolve(null))));
      if (read) yield { file: read, path, handle: (await handle) || null };
    }
  }
}

async function childrenOf(folder) {
  const reader = folder.createReader();
  const children = [];
  for (;;) {
    const part = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (part.length === 0) return children.sort((one, other) => (one.name < other.name ? -1 : 1)).map((entry) => ({ entry }));
    children.push(...part);
  }
}
