import type { CST } from 'yaml';

/** Offset of something nested deeper than `levels`, or null. Without recursion, which is what it guards. */
export function findTooDeep(tokens: readonly CST.Token[], levels: number): number | null {
  const pending: [token: CST.Token, level: number][] = tokens.map((token) => [token, 0]);
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [token, level] = next;
    if (token.type === 'document') {
      if (token.value !== undefined) pending.push([token.value, level]);
    } else if ('items' in token) {
      if (level === levels) return token.offset;
      for (const { key, value } of token.items) {
        if (key) pending.push([key, level + 1]);
        if (value) pending.push([value, level + 1]);
      }
    }
  }
  return null;
}
