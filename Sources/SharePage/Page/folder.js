/** The list of the folder that the page shows. */
import { icon, make, setIcon, setText, WindowedList } from "./list.js";
import { kindOf } from "./rows.js";
import { list, Refusal, root } from "./server.js";
import { compareNames, date, day, size, text } from "./text.js";

const element = (id) => document.getElementById(id);
/** Pictures up to this size are shown small in the list; fetching larger ones would cost too much. */
const thumbnailBytes = 1 << 20;
const orders = {
  name: (one, other) => compareNames(one.name, other.name),
  modified: (one, other) => other.modified - one.modified,
  size: (one, other) => (other.size ?? 0) - (one.size ?? 0),
};

export class Folder {
  /** The folder's URL. */
  url = "";
  #about = null;
  #entries = [];
  #next = null;
  #reading = 0;
  #rows = new WindowedList(element("entries"), () => this.#makeRow(), (row, entry) => this.#fill(row, entry));

  /** `opened` is called when the person has moved to another folder. */
  constructor(opened) {
    this.opened = opened;
    element("sort").onchange = () => this.#show();
    element("more").onclick = () => this.#read(this.#next);
    addEventListener("popstate", () => this.open(location.href, false));
    // Links to folders are real links; but to leave the page would end the uploads.
    element("folder").addEventListener("click", (event) => {
      const link = event.target.closest("a[data-folder]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.open(link.href, true);
      element("folder-title").focus();
    });
  }

  start(about) {
    this.#about = about;
    element("folder").hidden = !about.lists;
    this.open(location.href, false);
  }

  open(address, isNew) {
    const place = new URL(address);
    const url = place.origin + place.pathname;
    if (isNew) history.pushState(null, "", url);
    if (url === this.url) return;
    this.url = url;
    this.#entries = [];
    this.#next = null;
    this.#showTrail();
    this.#show();
    this.refresh();
    this.opened();
  }

  /** Reads the list again. */
  refresh() {
    if (this.#about.lists) return this.#read(null);
  }

  async #read(after) {
    const reading = (this.#reading += 1);
    let failure = "";
    try {
      const part = await list(this.url, after);
      if (reading !== this.#reading) return;
      this.#entries = after === null ? part.entries : [...this.#entries, ...part.entries];
      this.#next = part.next;
    } catch (error) {
      if (reading !== this.#reading) return;
      if (error instanceof Refusal && error.status === 401) return;  // Uploads or the next visit ask for the code.
      failure = text("listFailed", { why: error instanceof Refusal ? error.reason : text("unreachable") });
    }
    this.#show(failure);
  }

  #show(failure = "") {
    const order = orders[element("sort").value];
    this.#rows.show([...this.#entries].sort((one, other) => other.folder - one.folder || order(one, other)));
    setText(element("folder-note"), failure || (this.#entries.length === 0 ? text("empty") : ""));
    element("more").hidden = this.#next === null;
  }

  #showTrail() {
    const parts = this.url.slice(root.length).split("/").filter((part) => part !== "");
    const trail = element("trail");
    trail.hidden = parts.length === 0;
    trail.replaceChildren();
    let url = root;
    for (const [index, part] of [null, ...parts].entries()) {
      if (part !== null) url += part + "/";
      const link = make("a", { href: url, textContent: part === null ? this.#about.name : decode(part) });
      link.dataset.folder = "";
      if (index === parts.length) link.setAttribute("aria-current", "page");
      trail.append(...(index > 0 ? [" / "] : []), link);
    }
  }

  #makeRow() {
    const row = make("li", { className: "row" });
    row.drawing = icon("file");
    row.picture = make("span", { className: "picture" }, row.drawing);
    row.link = make("a", { className: "name" });
    row.status = make("span", { className: "status" });
    row.get = make("a", { className: "icon", download: "" }, icon("get"));
    row.append(row.picture, row.link, make("span", { className: "buttons" }, row.get), row.status);
    return row;
  }

  #fill(row, entry) {
    if (row.shown === entry) return;
    row.shown = entry;
    const { name, folder: isFolder } = entry;
    // Without the folder's URL, a name like `a:b` would be another scheme.
    const url = this.url + entry.url + (isFolder && !entry.url.endsWith("/") ? "/" : "");
    setText(row.link, name);
    setIcon(row.drawing, kindOf(name, isFolder));
    if (isFolder) row.link.dataset.folder = "";
    const canRead = isFolder || this.#about.downloads;
    if (canRead) row.link.href = url;
    if (!isFolder) row.link.target = "_blank";
    row.get.hidden = isFolder || !canRead;
    row.get.href = url + "?download";
    row.get.setAttribute("aria-label", (row.get.title = text("download", { name })));
    setText(row.status, (isFolder ? text("folderKind") : size(entry.size)) + " · " + day(entry.modified));
    row.status.title = date(entry.modified);
    if (canRead && /\.(jpe?g|png|gif|webp|avif)$/i.test(name) && entry.size <= thumbnailBytes) {
      const picture = make("img", { alt: "", loading: "lazy", decoding: "async", src: url });
      picture.onload = () => row.drawing.setAttribute("hidden", "");
      picture.onerror = () => picture.remove();
      row.picture.append(picture);
    }
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;  // A name that is not UTF-8.
  }
}
