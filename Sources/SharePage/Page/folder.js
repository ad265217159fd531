// The list of a folder.
import { copy, element, make, setIcon, setText, showName, WindowedList } from "./list.js";
import { decode, list, Refusal, root } from "./server.js";
import { compareNames, date, size, text } from "./text.js";

const orders = {
  name: (one, other) => compareNames(one.name, other.name),
  modified: (one, other) => other.modified - one.modified,
  size: (one, other) => other.size - one.size,
};

export class Folder {
  url = "";
  #entries = [];
  #next = null;
  #tag = "";
  #hasMore = false;
  #rows = new WindowedList(element("entries"), () => copy("entry"), (...shown) => this.#fill(...shown));

  constructor(about, opened) {
    Object.assign(this, { about, opened });
    element("folder").hidden = !about.lists;
    element("sort").onchange = () => this.#show();
    element("more").onclick = () => this.#read(this.#next);
    addEventListener("popstate", () => this.open(location.href));
    // Following a link would end the uploads.
    element("folder").addEventListener("click", (event) => {
      const link = event.target.closest("a.folder");
      if (!link || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      history.pushState(null, "", link.href);
      this.open(link.href);
      element("folder-title").focus();
    });
  }

  open(address) {
    const { origin, pathname } = new URL(address);
    if (this.url === origin + pathname) return;
    this.url = origin + pathname;
    this.#entries = [];
    this.#next = null;
    this.#tag = "";
    element("archive").hidden = true;
    this.#showTrail();
    this.refresh();
    this.opened();
  }

  // `isRegular`: a list of which more parts are shown stays as it is.
  async refresh(isRegular) {
    if (this.about.lists && !(isRegular && this.#hasMore)) await this.#read(null);
  }

  async #read(after) {
    const { url } = this;
    try {
      const answer = await list(url, after, after ? "" : this.#tag);
      if (url !== this.url) return;
      if (!answer) return this.#show(this.#entries.length > 0 ? "" : text("empty"));
      const { entries, next, archive } = answer;
      this.#tag = answer.tag;
      this.#hasMore = Boolean(after);
      // A server that gives no files has no archive.
      element("archive").hidden = !archive || (entries.length === 0 && !after);
      if (archive) element("archive").href = new URL(archive, url);
      // Rows of the same entries stay.
      const known = new Map(this.#entries.map((entry) => [JSON.stringify(entry), entry]));
      const read = entries.map((entry) => known.get(JSON.stringify(entry)) ?? entry);
      this.#entries = after ? [...this.#entries, ...read] : read;
      this.#next = next;
      this.#show(entries.length > 0 || after ? "" : text("empty"));
    } catch (error) {
      if (error instanceof Refusal && error.status !== 401) this.#show(text(error.status === 404 ? "nothing" : "trouble"));
    }
  }

  #show(note = "") {
    const order = orders[element("sort").value];
    this.#rows.show(this.#entries.toSorted((one, other) => other.folder - one.folder || order(one, other)));
    setText(element("folder-note"), note);
    element("more").hidden = this.#next === null;
  }

  // Of the folders from the shared one to this one, as in the address.
  get names() { return this.url.slice(root.length).split("/").filter(Boolean); }

  #showTrail() {
    const { names } = this;
    let url = root;
    const link = (textContent) => make("a", { href: url, textContent, className: "folder" });
    const links = [link(this.about.name)];
    for (const name of names) {
      url += name + "/";
      links.push(" / ", link(decode(name)));
    }
    element("trail").hidden = names.length === 0;
    element("trail").replaceChildren(...links);
  }

  #fill(row, entry, width) {
    showName(row.link, entry.name, width - 140);
    if (row.shown === entry) return;
    row.shown = entry;
    const { name, url, folder: isFolder } = entry;
    setIcon(row.drawing, isFolder ? "folder" : "file");
    setText(row.status, `${isFolder ? text("folder") : size(entry.size)} · ${date(entry.modified, { dateStyle: "medium" })}`);
    row.status.title = date(entry.modified);
    row.get.hidden = isFolder || url === null;
    if (url === null) return;  // The server only lists.
    row.link.href = new URL(url, this.url);
    row.link.classList.toggle("folder", isFolder);
    if (!isFolder) row.link.target = "_blank";
    row.get.href = row.link.href + (row.link.search ? "&" : "?") + "download";
    row.get.download = name;
    row.get.ariaLabel = `${text("download")}: ${name}`;
    const isShown = /\.(jpe?g|png|gif|webp|avif)$/i.test(name) && entry.size <= 1 << 20;
    // A photo without a preview may be small enough to be shown itself.
    const sources = [entry.thumbnail && new URL(entry.thumbnail, this.url).href, isShown && row.link.href].filter(Boolean);
    if (sources.length === 0) return;
    const picture = make("img", { alt: "", loading: "lazy", src: sources.shift() });
    picture.onerror = () => (sources.length > 0 ? (picture.src = sources.shift()) : picture.remove());
    row.drawing.after(picture);
  }
}
