import { readdir } from 'node:fs/promises';
import { join, parse, sep } from 'node:path';
import { createGlob } from '../base/glob.ts';

/** Shells expand patterns themselves; this is for those that are quoted, and for shells that do not. */
export function isPattern(name: string): boolean {
  return /[*?[]/.test(name);
}

/** Files that a pattern of `*`, `?`, `[a-z]` and `**` (any depth of folders) names, sorted. Hidden ones only if the pattern says so. */
export async function expandPattern(pattern: string): Promise<string[]> {
  const { root } = parse(pattern);
  const segments = pattern
    .slice(root.length)
    .split(/[\\/]+/)
    .filter((segment, index, all) => segment !== '' && !(segment === '**' && all[index - 1] === '**'));
  const found = await expand(root, segments);
  return [...new Set(found)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

async function expand(folder: string, [segment, ...rest]: readonly string[]): Promise<string[]> {
  if (segment === undefined) return [];
  const entries = await readdir(folder === '' ? '.' : folder, { withFileTypes: true }).catch(() => []);
  const found: string[] = [];
  if (segment === '**') {
    found.push(...(await expand(folder, rest)));
    for (const entry of entries) {
      if (!entry.isDirectory() || entry.name.startsWith('.')) continue;
      found.push(...(await expand(join(folder, entry.name), [segment, ...rest])));
    }
    return found;
  }
  const names = matcher(segment);
  for (const entry of entries) {
    if (!names(entry.name)) continue;
    const path = join(folder, entry.name);
    if (rest.length > 0) found.push(...(await expand(path, rest)));
    else if (!entry.isDirectory()) found.push(path);
  }
  // A plain folder on the way that cannot be listed may still be passed through.
  if (entries.length === 0 && rest.length > 0 && !isPattern(segment)) {
    return expand(`${folder}${folder === '' || folder.endsWith(sep) ? '' : sep}${segment}`, rest);
  }
  return found;
}

function matcher(segment: string): (name: string) => boolean {
  if (!isPattern(segment)) return (name) => name === segment;
  const units = [...segment.matchAll(/\[(!?)([^\]]+)\]|./gsu)].map(([found, not, set]) => {
    if (set !== undefined) return oneOf(set, not === '!');
    return found === '?' ? () => true : found;
  });
  const matches = createGlob(units);
  return (name) => (segment.startsWith('.') || !name.startsWith('.')) && matches(name);
}

function oneOf(set: string, negated: boolean): (character: string) => boolean {
  // As in shells, a range that ends before it begins has no characters.
  const ordered = set.replaceAll(/(.)-(.)/gsu, (range, from: string, to: string) =>
    (from.codePointAt(0) ?? 0) <= (to.codePointAt(0) ?? 0) ? range : '',
  );
  const expression = new RegExp(`^[${negated ? '^' : ''}${ordered.replaceAll('\\', '\\\\')}]$`, 'su');
  return (character) => expression.test(character);
}
