/**
 * Maximum number of edits in a plausible typo. It is lower for short names, which differ by few
 * edits anyway.
 */
function mostEdits(name: string): number {
  if (name.length < 3) return 0;
  return name.length < 6 ? 1 : 2;
}

export function findMeant(name: string, names: Iterable<string>, max = mostEdits(name)): string | undefined {
  let nearest: string | undefined;
  let fewest = max + 1;
  for (const each of names) {
    if (Math.abs(each.length - name.length) >= fewest) continue;
    const edits = distance(name, each);
    if (edits >= fewest) continue;
    nearest = each;
    fewest = edits;
  }
  return nearest;
}

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
