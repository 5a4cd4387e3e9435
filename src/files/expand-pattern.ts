import { readdir } from 'node:fs/promises';
import { join, parse, sep } from 'node:path';
import { createGlob } from '../base/glob.ts';

/** True if the name is a pattern. Shells do not expand quoted patterns. */
export function isPattern(name: string): boolean {
  return /[*?[]/.test(name);
}

/**
 * Returns sorted files that match `*`, `?`, `[a-z]` and `**` (any depth). Hidden files match only a
 * pattern that begins with a dot.
 */
export async function expandPattern(pattern: string): Promise<string[]> {
  const { root } = parse(pattern);
  const segments = pattern
    .slice(root.length)
    .split(/[\\/]+/)
    .filter((segment, index, all) => segment !== '' && !(segment === '**' && all[index - 1] === '**'));
  const paths = await expand(root, segments);
  return [...new Set(paths)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

async function expand(folder: string, [segment, ...rest]: readonly string[]): Promise<string[]> {
  if (segment === undefined) return [];
  const entries = await readdir(folder === '' ? '.' : folder, { withFileTypes: true }).catch(() => []);
  const paths: string[] = [];
  if (segment === '**') {
    paths.push(...(await expand(folder, rest)));
    for (const entry of entries) {
      if (!entry.isDirectory() || entry.name.startsWith('.')) continue;
      paths.push(...(await expand(join(folder, entry.name), [segment, ...rest])));
    }
    return paths;
  }
  const matches = matcher(segment);
  for (const entry of entries) {
    if (!matches(entry.name)) continue;
    const path = join(folder, entry.name);
    if (rest.length > 0) paths.push(...(await expand(path, rest)));
    else if (!entry.isDirectory()) paths.push(path);
  }
  // A subfolder with a plain name may be accessible even in a folder that cannot be listed.
  if (entries.length === 0 && rest.length > 0 && !isPattern(segment)) {
    return expand(`${folder}${folder === '' || folder.endsWith(sep) ? '' : sep}${segment}`, rest);
  }
  return paths;
}

function matcher(segment: string): (name: string) => boolean {
  if (!isPattern(segment)) return (name) => name === segment;
  const units = [...segment.matchAll(/\[(!?)([^\]]+)\]|./gsu)].map(([text, not, set]) => {
    if (set !== undefined) return oneOf(set, not === '!');
    return text === '?' ? () => true : text;
  });
  const matches = createGlob(units);
  return (name) => (segment.startsWith('.') || !name.startsWith('.')) && matches(name);
}

function oneOf(set: string, negated: boolean): (character: string) => boolean {
  // As in shells, a range whose end is before its start is empty.
  const ordered = set.replaceAll(/(.)-(.)/gsu, (range, from: string, to: string) =>
    (from.codePointAt(0) ?? 0) <= (to.codePointAt(0) ?? 0) ? range : '',
  );
  const expression = new RegExp(`^[${negated ? '^' : ''}${ordered.replaceAll('\\', '\\\\')}]$`, 'su');
  return (character) => expression.test(character);
}
