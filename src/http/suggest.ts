/** Letters that may be wrong, missing, too many or in each other's place. */
const maxDistance = 2;
/** A name that is longer is not looked at: comparing takes the product of the lengths. */
const maxNameLength = 40;

/** A name that was given, as a message may quote it. */
export function quoteName(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

/** `did you mean status?`, or all that there are. */
export function suggest(name: string, known: readonly string[]): string {
  const near = known
    .map((each) => ({ each, distance: distance(name.toLowerCase(), each) }))
    .filter((found) => found.distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance)[0];
  if (near !== undefined) return `did you mean ${near.each}?`;
  return known.length === 0 ? 'it takes none' : `known: ${known.join(', ')}`;
}

/** Edits that lead from one name to the other; a blank, dash or underscore more or less is none. */
function distance(a: string, b: string): number {
  const [from, to] = [a.replace(/[-_ ]/g, ''), b.replace(/[-_ ]/g, '')];
  if (from.length > maxNameLength) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + Number(letter !== other);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
