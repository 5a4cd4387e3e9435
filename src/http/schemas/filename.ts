const maxCharacters = 255;

/**
 * A file name as it may be shown: without folders, control characters and what reorders text. It is never used as a
 * path. Undefined if nothing is left of it.
 */
export function cleanFilename(name: string): string | undefined {
  const last = name.toWellFormed().split(/[\\/]/).at(-1) ?? '';
  const clean = last.replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '').trim();
  return Array.from(clean).slice(0, maxCharacters).join('') || undefined;
}

/** The name that a Content-Disposition header gives, if it gives one. */
export function dispositionFilename(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const extended = /;\s*filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(header)?.[1];
  if (extended !== undefined) {
    try {
      return cleanFilename(decodeURIComponent(extended));
    } catch {
      // Not what it claims to be; the plain name may do.
    }
  }
  const quoted = /;\s*filename\s*=\s*"((?:[^"\\]|\\.)*)"/i.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
  const plain = quoted ?? /;\s*filename\s*=\s*([^";\s]+)/i.exec(header)?.[1];
  // Node reads headers as latin1; names in them are mostly UTF-8.
  return plain === undefined ? undefined : cleanFilename(Buffer.from(plain, 'latin1').toString('utf8'));
}
