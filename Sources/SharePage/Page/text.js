/** The words of the page in English and German, and numbers and dates in the way of the reader's language. */

const TEXTS = {
  en: {
    code: "Code", enter: "Continue",
    codeHelp: "The code is shown on the computer that receives: in its terminal, below the square QR code.",
    codeWrong: "This code is not right. Compare it with the one on the receiving computer.",
    codeAgain: "The code is needed again: the receiving computer has a new one.",
    sendTo: "Send to {name}", read: "{name}",
    free: "{size} free", openUntil: "open until {time}", readOnly: "The receiver takes no files here.",
    sendFiles: "Send files", pickFiles: "Choose photos and files", takePhoto: "Take a photo", pickFolder: "Choose a folder",
    dropHint: "or drop files and folders anywhere on this page, or paste a picture.", dropHere: "Drop here to send",
    uploads: "Files being sent", finished: "Finished files", progress: "Progress",
    pause: "Pause", goOn: "Go on", retry: "Try again", remove: "Remove", forget: "Forget", close: "Close",
    labelled: "{action}: {name}",
    waiting: "Waiting", paused: "Paused", checking: "Looking how far it is", sending: "{sent} of {size}",
    elsewhere: "Another tab sends this file", saving: "Sent, the receiver checks and saves it",
    sent: "Sent", same: "Was already there", skipped: "Sent earlier", renamed: "sent as {name}, since that name was taken",
    sameRenamed: "was already there as {name}",
    counts: "{done} of {n} file|{done} of {n} files", looking: "looking for more files", left: "about {time} left",
    allDone: "All sent: {n} file|All sent: {n} files", doneSome: "{n} file not sent|{n} files not sent",
    someSame: "{n} was already there|{n} were already there", someRenamed: "{n} has a new name|{n} have new names",
    showFinished: "{n} finished file|{n} finished files",
    announceStart: "Sending {n} file|Sending {n} files", announcePart: "{part} sent",
    unreachable: "The receiver does not answer. This page tries again by itself.",
    offline: "This device has no network. It goes on by itself when the network is back.",
    stoppedAll: "Paused. Nothing is sent until you go on.",
    full: "The receiver's disk is full. It goes on by itself when there is room.",
    trouble: "The receiver has trouble and is asked again soon: {why}",
    tooLarge: "Too large: the receiver takes files of at most {size}.", tooLargeAll: "Too large for the receiver: {why}",
    badName: "The receiver cannot store this name: {why}", forbidden: "The receiver does not allow it: {why}",
    refused: "The receiver refused it ({status}): {why}", noName: "No free name was found for it: {why}",
    unreadable: "The file cannot be read any more: it was moved, changed or removed. Choose it again.",
    noRoom: "Not enough room: {chosen} are chosen and {free} are free.", sendAnyway: "Send anyway",
    unfinished: "{n} file from last time is not finished: {names}.|{n} files from last time are not finished: {names}.",
    unfinishedHow: "Choose the same files again, and they go on where they stopped.",
    unfinishedHandles: "They go on where they stopped.", chooseAgain: "Choose again", andMore: "and {n} more",
    keepOn: "Keep the screen on and this page open until all is sent.", noStore: "This browser cannot remember unfinished files.",
    inFolder: "In this folder", sortBy: "Sort by", byName: "Name", byDate: "Newest first", bySize: "Largest first", trail: "Folders",
    empty: "Nothing is here yet.", more: "Show more", download: "Download: {name}", folderKind: "Folder",
    listFailed: "The list of this folder could not be read: {why}", noFiles: "Nothing was found that can be sent.",
    home: "Start", seconds: "{n} s", minutes: "{n} min", hours: "{h} h {m} min",
  },
  de: {
    code: "Code", enter: "Weiter",
    codeHelp: "Der Code steht auf dem empfangenden Computer: im Terminal, unter dem quadratischen QR-Code.",
    codeWrong: "Dieser Code stimmt nicht. Vergleiche ihn mit dem auf dem empfangenden Computer.",
    codeAgain: "Der Code wird noch einmal gebraucht: Der empfangende Computer hat einen neuen.",
    sendTo: "Senden an {name}", read: "{name}",
    free: "{size} frei", openUntil: "offen bis {time}", readOnly: "Der Empfänger nimmt hier keine Dateien an.",
    sendFiles: "Dateien senden", pickFiles: "Fotos und Dateien wählen", takePhoto: "Foto aufnehmen", pickFolder: "Ordner wählen",
    dropHint: "oder Dateien und Ordner irgendwo auf diese Seite ziehen oder ein Bild einfügen.", dropHere: "Zum Senden hier ablegen",
    uploads: "Dateien, die gesendet werden", finished: "Fertige Dateien", progress: "Fortschritt",
    pause: "Pause", goOn: "Weiter", retry: "Noch einmal", remove: "Entfernen", forget: "Vergessen", close: "Schließen",
    labelled: "{action}: {name}",
    waiting: "Wartet", paused: "Angehalten", checking: "Prüft, wie weit es ist", sending: "{sent} von {size}",
    elsewhere: "Ein anderer Tab sendet diese Datei", saving: "Gesendet, der Empfänger prüft und speichert",
    sent: "Gesendet", same: "War schon da", skipped: "Früher gesendet", renamed: "gesendet als {name}, denn der Name war vergeben",
    sameRenamed: "war schon da als {name}",
    counts: "{done} von {n} Datei|{done} von {n} Dateien", looking: "sucht weitere Dateien", left: "noch etwa {time}",
    allDone: "Alles gesendet: {n} Datei|Alles gesendet: {n} Dateien", doneSome: "{n} Datei nicht gesendet|{n} Dateien nicht gesendet",
    someSame: "{n} war schon da|{n} waren schon da", someRenamed: "{n} hat einen neuen Namen|{n} haben neue Namen",
    showFinished: "{n} fertige Datei|{n} fertige Dateien",
    announceStart: "{n} Datei wird gesendet|{n} Dateien werden gesendet", announcePart: "{part} gesendet",
    unreachable: "Der Empfänger antwortet nicht. Diese Seite versucht es von selbst weiter.",
    offline: "Dieses Gerät hat kein Netz. Es geht von selbst weiter, wenn das Netz wieder da ist.",
    stoppedAll: "Angehalten. Es wird nichts gesendet, bis du weitermachst.",
    full: "Der Speicher des Empfängers ist voll. Es geht von selbst weiter, wenn wieder Platz ist.",
    trouble: "Der Empfänger hat ein Problem und wird bald wieder gefragt: {why}",
    tooLarge: "Zu groß: Der Empfänger nimmt Dateien bis {size}.", tooLargeAll: "Zu groß für den Empfänger: {why}",
    badName: "Der Empfänger kann diesen Namen nicht speichern: {why}", forbidden: "Der Empfänger erlaubt es nicht: {why}",
    refused: "Der Empfänger hat es abgelehnt ({status}): {why}", noName: "Kein freier Name wurde gefunden: {why}",
    unreadable: "Die Datei ist nicht mehr lesbar: Sie wurde verschoben, geändert oder gelöscht. Wähle sie noch einmal.",
    noRoom: "Nicht genug Platz: {chosen} sind gewählt, {free} sind frei.", sendAnyway: "Trotzdem senden",
    unfinished: "{n} Datei vom letzten Mal ist nicht fertig: {names}.|{n} Dateien vom letzten Mal sind nicht fertig: {names}.",
    unfinishedHow: "Wähle dieselben Dateien noch einmal, dann gehen sie dort weiter, wo sie aufgehört haben.",
    unfinishedHandles: "Sie gehen dort weiter, wo sie aufgehört haben.", chooseAgain: "Noch einmal wählen", andMore: "und {n} weitere",
    keepOn: "Lass den Bildschirm an und diese Seite offen, bis alles gesendet ist.", noStore: "Dieser Browser kann sich unfertige Dateien nicht merken.",
    inFolder: "In diesem Ordner", sortBy: "Sortieren", byName: "Name", byDate: "Neueste zuerst", bySize: "Größte zuerst", trail: "Ordner",
    empty: "Hier ist noch nichts.", more: "Mehr zeigen", download: "Herunterladen: {name}", folderKind: "Ordner",
    listFailed: "Die Liste dieses Ordners war nicht zu lesen: {why}", noFiles: "Es wurde nichts gefunden, das sich senden lässt.",
    home: "Anfang", seconds: "{n} s", minutes: "{n} min", hours: "{h} h {m} min",
  },
};

const preferred = navigator.languages?.length ? navigator.languages : [navigator.language || "en"];
/** The first of the reader's languages that the page has. */
export const language = preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in TEXTS) ?? "en";
/** The reader's own variant of that language, such as en-GB, which decides on numbers and dates. */
const locale = preferred.find((tag) => tag.toLowerCase().startsWith(language)) ?? language;
const plural = new Intl.PluralRules(language);

/** The text for `key`. Of a text with two forms, `values.n` selects the singular or the plural. */
export function text(key, values = {}) {
  let form = TEXTS[language][key];
  if (form.includes("|")) form = form.split("|")[plural.select(values.n) === "one" ? 0 : 1];
  return form.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number(values[name]) : values[name]));
}

/** Fills in the texts of the elements that page.html marks with `data-text` and `data-label`. */
export function translatePage() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text(element.dataset.label));
}

const formats = [0, 1].map((digits) => new Intl.NumberFormat(locale, { maximumFractionDigits: digits }));
const days = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const dates = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const times = new Intl.DateTimeFormat(locale, { timeStyle: "short" });
const percents = new Intl.NumberFormat(locale, { style: "percent" });
const order = new Intl.Collator(locale, { numeric: true });

export const number = (value) => formats[0].format(value);
/** A share between 0 and 1. It is rounded down, so that 100 % means the end. */
export const percent = (share) => percents.format(Math.floor(share * 100) / 100);
/** The day; `seconds` since 1970. */
export const day = (seconds) => days.format(new Date(seconds * 1000));
/** The day and the time. */
export const date = (seconds) => dates.format(new Date(seconds * 1000));
/** The time of day, with the date unless it is today. `seconds` since 1970. */
export function time(seconds) {
  const at = new Date(seconds * 1000);
  return (at.toDateString() === new Date().toDateString() ? times : dates).format(at);
}
export const compareNames = order.compare;

/** A number of bytes, like `3.4 MB`; the units are decimal, as phones show them. */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${formats[unit > 0 && bytes < 99.5 ? 1 : 0].format(bytes)}\u00a0${units[unit]}`;
}

export function duration(seconds) {
  if (seconds < 55) return text("seconds", { n: Math.max(1, Math.ceil(seconds / 5) * 5) });
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? text("minutes", { n: minutes }) : text("hours", { h: Math.floor(minutes / 60), m: minutes % 60 });
}
