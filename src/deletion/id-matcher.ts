import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';

/** What stands around a value in CSV and JSON. */
const delimiters = /[,;|\t\r\n"{}[\]:]/;
const jsonEscape = /\\(?:u([0-9a-f]{4})|(.))/gi;
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Whether the text of a refused record holds one of the ids, as a CSV cell or a JSON value: it may be neither whole nor
 * well-formed, so it is not parsed but taken apart. Errs towards yes: an id that holds a delimiter is looked for anywhere,
 * a number by its value, and of a text that was cut nobody knows what it held.
 */
export function createIdMatcher(ids: readonly string[]): (raw: Uint8Array) => boolean {
  const plain = new Set<string>();
  /** Ids that delimiters would take apart, by the first of their parts that is not empty. */
  const composite = new Map<string, string[]>();
  for (const id of ids) {
    if (!delimiters.test(id)) plain.add(id);
    else {
      const part = partsOf(id).find((each) => each !== '') ?? '';
      composite.set(part, [...(composite.get(part) ?? []), id]);
    }
  }
  return (raw) => {
    if (raw.length >= MAX_REJECT_RAW_BYTES) return true;
    const text = Buffer.from(raw).toString('utf8');
    const variants = [text, text.replace(jsonEscape, unescaped), text.replaceAll('""', '"')];
    const holds = (id: string): boolean => variants.some((each) => each.includes(id));
    if (composite.get('')?.some(holds) === true) return true;
    return variants.some((variant) =>
      variant.split(delimiters).some((token) => {
        const trimmed = token.trim();
        return (
          plain.has(token) ||
          plain.has(trimmed) ||
          plain.has(asNumber(trimmed)) ||
          composite.get(trimmed)?.some(holds) === true
        );
      }),
    );
  };
}

function partsOf(id: string): string[] {
  return id.split(delimiters).map((part) => part.trim());
}

/** As bulk data makes an id of a number; a text that is none stays as it is. */
function asNumber(token: string): string {
  return /^-?\d[\d.eE+-]*$/.test(token) ? String(Number(token)) : token;
}

function unescaped(_escape: string, code: string | undefined, plain: string | undefined): string {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
  return escapes[plain ?? ''] ?? plain ?? '';
}
