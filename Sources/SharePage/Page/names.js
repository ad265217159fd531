// The names under which files are sent. Phones call many pictures `image.jpg`.

// `a/IMG_0001 (2).jpg`, with fewer letters before the number if the name would have more than 255 bytes.
function numbered(path, number) {
  const begin = path.lastIndexOf("/") + 1;
  const dot = path.lastIndexOf(".");
  const end = dot > begin ? dot : path.length;
  const letters = [...path.slice(begin, end)];
  const rest = ` (${number})` + path.slice(end);
  while (new Blob([...letters, rest]).size > 255 && letters.length > 1) letters.pop();
  return path.slice(0, begin) + letters.join("") + rest;
}

// Some file systems ignore case.
const idOf = ({ folder }, path) => (folder + path).toLowerCase();

export class Names {
  // The files by the names that they have.
  #holders = new Map();
  // The last number tried for a name.
  #numbers = new Map();

  // Reserves `item.target`, or another name if a file of another size has it. Returns false while one of the same size
  // is sent, which the server compares then.
  reserve(item) {
    for (;;) {
      const holder = this.#holders.get(idOf(item, item.target));
      if (!holder || holder.key === item.key) break;
      if (holder.size === item.size) {
        if (holder.isActive) return false;
        break;
      }
      this.next(item);
    }
    this.#holders.set(idOf(item, item.target), { key: item.key, size: item.size, isActive: true });
    return true;
  }

  // The numbers grow fast where many are taken.
  next(item) {
    const id = idOf(item, item.path);
    const last = this.#numbers.get(id) ?? 1;
    item.tries += 1;
    const number = item.tries > 4 ? last * 2 : last + 1;
    this.#numbers.set(id, number);
    Object.assign(item, { target: numbered(item.path, number), url: null, offset: 0 });
  }

  // The file was sent and keeps the name, or needs it no longer.
  end(item, isSent) {
    const id = idOf(item, item.target);
    const holder = this.#holders.get(id);
    if (holder?.key !== item.key) return;
    if (isSent) holder.isActive = false;
    else this.#holders.delete(id);
  }
}
