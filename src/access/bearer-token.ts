import { digestKey, matchesDigest } from './key-text.ts';

/**
 * Says of Authorization headers whether they are `Bearer <token>`, in a time that does not tell how far they agree.
 * Without a token everybody may.
 */
export function createTokenCheck(token: string | null): (header: string | undefined) => boolean {
  if (token === null) return () => true;
  const digest = digestKey(token);
  return (header) => matchesDigest(/^bearer +(\S+)$/i.exec(header?.trim() ?? '')?.[1] ?? '', digest);
}
