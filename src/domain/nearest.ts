import { distance } from 'fastest-levenshtein';

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
