export interface CopiedRow {
  readonly key: string;
  /** Parsed JSON. If a name occurs repeatedly in the JSON, its last value counts, as in jsonb. */
  readonly properties: Record<string, unknown>;
  readonly company: string | null;
  readonly flags: number;
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

export function copiedFields(text: Buffer): (string | null)[][] {
  const lines = text.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new Error('the last line is not ended');
  return lines.map((line) => line.split('\t').map(readField));
}

/** Reads rows in the text format of COPY. Throws if a line does not have six fields. */
export function readCopyText(text: Buffer): CopiedRow[] {
  return copiedFields(text).map((fields) => {
    const [key, properties, company, _digest, removes, isCounted, ...surplus] = fields;
    if (
      key == null ||
      properties == null ||
      removes == null ||
      isCounted == null ||
      company === undefined ||
      surplus.length > 0
    ) {
      throw new Error(`not six fields: ${JSON.stringify(fields).slice(0, 1000)}`);
    }
    const flags = (removes === 't' ? 1 : 0) | (isCounted === 't' ? 0 : 2);
    return { key, properties: JSON.parse(properties), company, flags };
  });
}

/** Reads a field in the text format of COPY. `\N` is null, and a backslash starts an escape. */
function readField(field: string): string | null {
  if (field === '\\N') return null;
  return field.replace(/\\(.)/gs, (_, escaped: string) => escapes[escaped] ?? escaped);
}
