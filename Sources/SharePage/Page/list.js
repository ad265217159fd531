// Lists of any length, of which only visible rows exist; all rows are equally high.

import { visible } from "./text.js";

export const element = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// A copy of a template of page.html, with its parts as properties by their first class.
export function copy(template) {
  const row = element(template).content.firstElementChild.cloneNode(true);
  for (const part of row.querySelectorAll("[class]")) row[part.classList[0]] = part;
  return row;
}

export const setIcon = (drawing, name) => setAttribute(drawing.firstChild, "href", "#i-" + name);

// These change only what differs, which saves layout.
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const pen = make("canvas").getContext("2d");

// The name, which keeps its end if it is wider than `width`, in CSS pixels.
export function fitted(name, width) {
  const letters = [...visible(name)];
  pen.font = getComputedStyle(document.body).font;
  for (let most = letters.length; ; most -= 1) {
    const end = Math.min(14, most >> 1);
    const shown = most < letters.length ? [...letters.slice(0, most - end), "…", ...letters.slice(-end)] : letters;
    const share = Math.max(80, width) / pen.measureText(shown.join("")).width;
    if (share >= 1 || most < 5) return shown.join("");
    most = Math.ceil(Math.min(most, most * share + 2));
  }
}

export function showName(element, name, width) {
  if (element.title === name && element.width === width) return;
  Object.assign(element, { title: name, width });
  setText(element, fitted(name, width));
}

// Rows outside the visible part.
const margin = 6;
const lists = new Set();
let isPlanned = false;

// Draws all lists before the next frame.
export function drawLists() {
  if (!isPlanned) requestAnimationFrame(() => {
    isPlanned = false;
    for (const list of lists) list.draw();
  });
  isPlanned = true;
}
addEventListener("scroll", drawLists, { passive: true });
addEventListener("resize", drawLists);

export class WindowedList {
  items = [];
  #rows = new Map();

  // `fill(row, item, width)` shows the item. `refuge` gets the focus when the last row is gone.
  constructor(element, makeRow, fill, refuge) {
    Object.assign(this, { element, makeRow, fill, refuge });
    lists.add(this);
  }

  show(items) {
    this.items = items;
    drawLists();
  }

  draw() {
    const { element, items } = this;
    if (element.hidden) return;
    const active = document.activeElement;
    const focused = [...this.#rows.values()].find((row) => row.contains(active));
    // A list that is not displayed has no place on the page.
    element.style.display = items.length > 0 ? "" : "none";
    // The style gives the height of a row as that of a line.
    const height = parseFloat(getComputedStyle(element).lineHeight);
    element.style.height = items.length * height + "px";
    const { top, width } = element.getBoundingClientRect();
    const first = Math.max(0, Math.floor(-top / height) - margin);
    const end = Math.ceil((innerHeight - top) / height) + margin;
    const visible = new Set(items.slice(first, Math.max(first, end)));
    for (const [item, row] of this.#rows) {
      if (visible.has(item)) continue;
      this.#rows.delete(item);
      row.remove();
    }
    let index = first;
    let previous = null;
    for (const item of visible) {
      let row = this.#rows.get(item);
      if (!row) this.#rows.set(item, (row = this.makeRow()));
      // The order is that for the keyboard; but a row that is moved loses the focus.
      const place = previous ? previous.nextSibling : element.firstChild;
      if (place !== row && (row !== focused || !row.parentNode)) element.insertBefore(row, place);
      row.style.transform = `translateY(${index * height}px)`;
      setAttribute(row, "aria-posinset", (index += 1));
      setAttribute(row, "aria-setsize", items.length);
      row.item = item;
      this.fill(row, item, width);
      previous = row;
    }
    // A button that is gone or hidden has lost the focus, or loses it before the next frame.
    if (focused && (active.hidden || !active.isConnected)) {
      const next = items[Math.min(focused.ariaPosInSet - 1, items.length - 1)];
      (this.#rows.get(next)?.querySelector("button:not([hidden]), a") ?? this.refuge)?.focus();
    }
  }
}
