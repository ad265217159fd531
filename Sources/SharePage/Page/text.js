// Words, numbers and dates.

// In English and German.
const TEXTS = {
  enter: ["Continue", "Weiter"],
  codeHelp: ["It is the end of the link in the terminal of the receiving computer, after the #.",
    "Er ist das Ende des Links im Terminal des empfangenden Computers, hinter dem #."],
  codeNew: ["The receiver was started again and has a new code.", "Der Empfänger wurde neu gestartet und hat einen neuen Code."],
  codeWrong: ["This code is not right.", "Dieser Code stimmt nicht."],
  sendTo: ["Send to {name}", "Senden an {name}"], free: ["{size} free", "{size} frei"], upTo: ["files up to {size}", "Dateien bis {size}"],
  openUntil: ["open until {time}", "offen bis {time}"],
  once: ["closes 30 s after you have left this page", "schließt 30 s, nachdem du diese Seite verlassen hast"],
  closed: ["The receiver has closed after the visit. It has kept what has arrived.",
    "Der Empfänger hat nach dem Besuch geschlossen. Was angekommen ist, hat er behalten."],
  over: ["The receiver was open until {time}. It has kept what has arrived.",
    "Der Empfänger war offen bis {time}. Was angekommen ist, hat er behalten."],
  pickFiles: ["Choose photos and files", "Dateien auswählen"], takePhoto: ["Camera", "Kamera"], folder: ["Folder", "Ordner"],
  dropHint: ["or drop files and folders here, or paste a picture.", "oder Dateien und Ordner hierher ziehen oder ein Bild einfügen."],
  dropHere: ["Drop here", "Hier ablegen"], progress: ["Progress", "Fortschritt"],
  pause: ["Pause", "Pause"], goOn: ["Go on", "Weiter"], retry: ["Try again", "Noch einmal"], remove: ["Remove", "Entfernen"],
  retryAll: ["Try all {n} again", "Alle {n} noch einmal"],
  forget: ["Forget", "Vergessen"], close: ["Close", "Schließen"],
  waiting: ["Waiting", "Wartet"], paused: ["Paused", "Angehalten"], partly: ["{sent} of {size}", "{sent} von {size}"],
  elsewhere: ["Another tab sends this file", "Ein anderer Tab sendet diese Datei"],
  saving: ["Sent, the receiver saves it", "Gesendet, der Empfänger speichert"],
  sent: ["Sent", "Gesendet"], same: ["Already there", "Schon da"], skipped: ["Sent earlier", "Früher gesendet"],
  renamed: ["new name: {name}", "neuer Name: {name}"], left: ["about {time} left", "noch etwa {time}"],
  failed: ["Not sent: {n}", "Nicht gesendet: {n}"],
  renamedCount: ["New names: {n}", "Neue Namen: {n}"],
  known: ["Already there: {n}", "Schon da: {n}"], finished: ["Finished: {n}", "Fertig: {n}"], uploads: ["Being sent", "Wird gesendet"],
  unreachable: ["The receiver does not answer. This page tries again.", "Der Empfänger antwortet nicht. Diese Seite versucht es weiter."],
  offline: ["This device has no network. This page waits for it.", "Dieses Gerät hat kein Netz. Diese Seite wartet darauf."],
  full: ["The receiver's disk is full. This page waits for room.", "Der Speicher des Empfängers ist voll. Diese Seite wartet auf Platz."],
  totalFull: ["The receiver takes no more than {size} in all. This page waits for room.",
    "Der Empfänger nimmt nicht mehr als {size} im Ganzen. Diese Seite wartet auf Platz."],
  trouble: ["The receiver has trouble. This page tries again.", "Der Empfänger hat ein Problem. Diese Seite versucht es weiter."],
  refused: ["The receiver refuses it: {why}", "Der Empfänger lehnt es ab: {why}"],
  "reserved-name": ["its name is reserved.", "Der Name ist ihm vorbehalten."],
  "long-name": ["its name is too long.", "Der Name ist zu lang."],
  "name-taken": ["its name is taken.", "Der Name ist vergeben."],
  "folder-taken": ["its folder's name is taken.", "Der Name des Ordners ist vergeben."],
  "too-large": ["it is too large.", "Zu groß."],
  "beyond-total": ["it is larger than the room for all.", "Größer als der Platz für alle."],
  "read-only": ["no files are taken.", "Er nimmt keine Dateien an."],
  "not-writable": ["the folder cannot be written.", "In den Ordner kann er nicht schreiben."],
  tooLarge: ["Too large: the receiver takes files of at most {size}.", "Zu groß: Der Empfänger nimmt Dateien bis {size}."],
  unreadable: ["The file was changed or removed. Choose it again.", "Die Datei wurde geändert oder gelöscht. Wähle sie noch einmal."],
  noRoom: ["Not enough room: {rest} are to be sent and {free} are free.", "Nicht genug Platz: {rest} sind noch zu senden, {free} sind frei."],
  unfinished: ["Not finished last time: {names}. Choose the same again to go on.",
    "Letztes Mal nicht fertig: {names}. Wähle dasselbe noch einmal, dann geht es weiter."],
  keepOn: ["Keep the screen on and this page open.", "Lass den Bildschirm an und diese Seite offen."],
  inFolder: ["In this folder", "In diesem Ordner"], sortBy: ["Sort by", "Sortieren"], byName: ["Name", "Name"],
  byDate: ["Newest first", "Neueste zuerst"], bySize: ["Largest first", "Größte zuerst"],
  empty: ["Nothing is here yet.", "Hier ist noch nichts."], nothing: ["There is no such folder.", "Diesen Ordner gibt es nicht."], more: ["Show more", "Mehr zeigen"], download: ["Download", "Herunterladen"],
  downloadAll: ["Download all as ZIP", "Alles als ZIP herunterladen"],
};

const languages = ["en", "de"];
const tags = navigator.languages?.length ? navigator.languages : ["en"];
// The reader's variant of a language of the page, as en-GB.
const locale = tags.find((tag) => languages.includes(tag.slice(0, 2))) ?? "en";
const language = locale.slice(0, 2);

export const text = (key, values = {}) => TEXTS[key][languages.indexOf(language)].replace(/\{(\w+)\}/g, (_, name) => values[name]);

// What a kind of refusal is; null: it is not known.
export const refusal = (kind) => (Object.hasOwn(TEXTS, kind) ? text(kind) : null);

// Without characters that are invisible or change the direction of what follows: a name must not look like another one.
export const visible = (name) => name.replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

export function translatePage() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text(element.dataset.label));
}

const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const percents = new Intl.NumberFormat(locale, { style: "percent" });
export const compareNames = new Intl.Collator(locale, { numeric: true }).compare;

// Rounds down: 100 % is the end.
export const percent = (share) => percents.format(Math.floor(share * 100) / 100);

// `seconds` since 1970; `style` of Intl.DateTimeFormat.
export const date = (seconds, style) => new Date(seconds * 1000).toLocaleString(locale, style);

// Like `3.4 MB`, in decimal units as on phones.
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  for (; bytes >= 999.5 && unit < units.length - 1; unit += 1) bytes /= 1000;
  return `${(unit > 0 && bytes < 99.5 ? tenths : whole).format(bytes)}\u00a0${units[unit]}`;
}

export function duration(seconds) {
  if (seconds < 55) return `${Math.ceil(seconds / 5) * 5 || 1} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
