/** Lists of any length: only the rows near the visible part of the page exist. All rows are equally high. */

/** Makes an element. `properties` are set on it; `children` are elements or texts. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** One of the drawings in page.html. */
export function icon(name) {
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("aria-hidden", "true");
  drawing.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
  setIcon(drawing, name);
  return drawing;
}

export function setIcon(drawing, name) {
  if (drawing.firstChild.getAttribute("href") !== "#i-" + name) drawing.firstChild.setAttribute("href", "#i-" + name);
}

/** Changes the text only if it is another one, so that screen readers and layout have no work. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button that shows only a drawing. */
export function iconButton(name, action) {
  const button = make("button", { type: "button", className: "icon", onclick: action }, icon(name));
  button.rename = (name, label) => {
    setIcon(button.firstChild, name);
    if (button.title !== label) button.setAttribute("aria-label", (button.title = label));
  };
  return button;
}

const margin = 6;
const lists = new Set();
let isPlanned = false;

/** Draws all lists before the next frame. */
export function drawLists() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    for (const list of lists) list.draw();
  });
}
addEventListener("scroll", drawLists, { passive: true });
addEventListener("resize", drawLists);

export class WindowedList {
  #rows = new Map();

  /** `makeRow()` makes a row's element, `fill(row, item)` shows the item in it. */
  constructor(element, makeRow, fill) {
    Object.assign(this, { element, makeRow, fill, items: [] });
    element.setAttribute("role", "list");
    lists.add(this);
  }

  show(items) {
    this.items = items;
    drawLists();
  }

  draw() {
    const { element, items } = this;
    if (element.hidden) return;
    const height = parseFloat(getComputedStyle(element).getPropertyValue("--row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);
    element.style.setProperty("height", items.length * height + "px");
    const top = element.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - margin);
    const end = Math.min(items.length, Math.ceil((innerHeight - top) / height) + margin);
    const visible = new Map();
    for (let index = first; index < end; index += 1) visible.set(items[index], index);
    for (const [item, row] of this.#rows) {
      if (visible.has(item)) continue;
      this.#rows.delete(item);
      const hadFocus = row.contains(document.activeElement);
      row.remove();
      // The keyboard goes on at the row that has taken this place.
      if (hadFocus) (this.#rows.get(items[Math.min(row.index, items.length - 1)])?.querySelector("button, a") ?? this.refuge)?.focus();
    }
    let previous = null;
    for (const [item, index] of visible) {
      let row = this.#rows.get(item);
      if (!row) this.#rows.set(item, (row = this.makeRow()));
      row.index = index;
      row.style.setProperty("transform", `translateY(${index * height}px)`);
      row.setAttribute("aria-posinset", index + 1);
      row.setAttribute("aria-setsize", items.length);
      row.item = item;
      this.fill(row, item);
      // The order in the document is the order for the keyboard. A row that has the focus loses it when it is moved.
      const place = previous ? previous.nextSibling : element.firstChild;
      if (place !== row && !row.contains(document.activeElement)) element.insertBefore(row, place);
      else if (!row.parentNode) element.insertBefore(row, place);
      previous = row;
    }
  }
}
