/** Decides under which names files are sent. Phones name many pictures `image.jpg`, and a name may exist already. */

/** `path` with a number before the extension of its last component: `a/IMG_0001 (2).jpg`. */
export function numbered(path, number) {
  const start = path.lastIndexOf("/") + 1;
  const dot = path.lastIndexOf(".");
  const end = dot > start ? dot : path.length;
  return `${path.slice(0, end)} (${number})${path.slice(end)}`;
}

export class Names {
  /** The file that has a name, by the name's URL: `key`, `size` and whether it is being sent. */
  #holders = new Map();
  /** The last number that was tried, by the URL of the name without a number. */
  #numbers = new Map();

  /** Reserves the name `item.target`, or another one if a file of another size has it. Returns false if a file of the
   *  same size is being sent under this name: the server compares the two when that has ended. */
  reserve(item) {
    for (;;) {
      const holder = this.#holders.get(this.#id(item));
      if (!holder || holder.key === item.key || (!holder.isActive && holder.size === item.size)) break;
      if (holder.isActive && holder.size === item.size) return false;
      this.next(item);
    }
    this.#holders.set(this.#id(item), { key: item.key, size: item.size, isActive: true });
    return true;
  }

  /** Gives the file the next name. The numbers grow fast when many names are taken. */
  next(item) {
    const base = (item.folder + item.path).toLowerCase();
    const last = this.#numbers.get(base) ?? 1;
    item.tries = (item.tries ?? 0) + 1;
    const number = item.tries > 4 ? last * 2 : last + 1;
    this.#numbers.set(base, number);
    item.target = numbered(item.path, number);
    item.url = null;
    item.offset = 0;
  }

  /** The file was sent and keeps the name (`isSent`), or it needs the name no longer. */
  end(item, isSent) {
    const holder = this.#holders.get(this.#id(item));
    if (holder?.key !== item.key) return;
    if (isSent) holder.isActive = false;
    else this.#holders.delete(this.#id(item));
  }

  #id(item) {
    return (item.folder + item.target).toLowerCase();  // Some file systems ignore case.
  }
}
