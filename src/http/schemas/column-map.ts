import { MAX_MAPPED_COLUMNS } from '../../domain/limits.ts';
import type { OptionValues } from './option-values.ts';

/**
 * `map=Their Header=user_id`, several times, or several in one, with commas between. A comma may also be part of a
 * header: what stands before it belongs to the next pair if it has no `=` of its own.
 */
export function readColumnMap(values: OptionValues): Record<string, string> {
  const pairs = values.all('map').flatMap((text) => splitPairs(text, values));
  if (pairs.length > MAX_MAPPED_COLUMNS) {
    values.refuse('map', `map may name ${MAX_MAPPED_COLUMNS} columns`);
    return {};
  }
  const map = new Map<string, string>();
  for (const [theirs, ours] of pairs) {
    const known = map.get(theirs) ?? ours;
    if (known !== ours) values.refuse('map', `map gives ${JSON.stringify(theirs)} two names`);
    map.set(theirs, ours);
  }
  return Object.fromEntries(map);
}

function splitPairs(text: string, values: OptionValues): [string, string][] {
  const pairs: [string, string][] = [];
  let header = '';
  for (const piece of text.split(',')) {
    const at = piece.lastIndexOf('=');
    header += at < 0 ? `${piece},` : piece.slice(0, at);
    if (at < 0) continue;
    const pair: [string, string] = [header.trim(), piece.slice(at + 1).trim()];
    if (pair.includes('')) values.refuse('map', 'map must be pairs like Their Header=user_id');
    else pairs.push(pair);
    header = '';
  }
  if (header.replaceAll(',', '').trim() !== '' || text.trim() === '') {
    values.refuse('map', 'map must be pairs like Their Header=user_id');
  }
  return pairs;
}
