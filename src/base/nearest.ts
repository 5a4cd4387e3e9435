/** The most letters that a name may be off and still be taken for a mistake: short names come too close to others. */
function mostEdits(name: string): number {
  return name.length < 3 ? 0 : name.length < 6 ? 1 : 2;
}

/** Returns the known name that somebody probably meant who wrote `name`; undefined if it resembles none. */
export function findMeant(name: string, known: Iterable<string>, most = mostEdits(name)): string | undefined {
  let nearest: string | undefined;
  let fewest = most + 1;
  for (const each of known) {
    // Each letter more or less takes an edit.
    if (Math.abs(each.length - name.length) >= fewest) continue;
    const edits = distance(name, each);
    if (edits < fewest) [nearest, fewest] = [each, edits];
  }
  return nearest;
}

/** Counts the letters to insert, remove or replace that make `from` into `to`. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at++) {
      const replaced = (row[at] ?? 0) + (from[index] === to[at] ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
