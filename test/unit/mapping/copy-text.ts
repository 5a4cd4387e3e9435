/** A row of the text for COPY, as PostgreSQL reads it. */
export interface CopiedRow {
  readonly key: string;
  /** The properties as jsonb keeps them: the last of repeated names. */
  readonly properties: Record<string, unknown>;
  readonly company: string | null;
  readonly flags: number;
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** Returns the fields of every line of COPY's text format. */
export function copiedFields(text: Buffer): (string | null)[][] {
  const lines = text.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new Error('the last line is not ended');
  return lines.map((line) => line.split('\t').map(readField));
}

/** Reads rows from COPY's text format. Throws if a line does not have six fields. */
export function readCopyText(text: Buffer): CopiedRow[] {
  return copiedFields(text).map((fields) => {
    const [key, properties, company, _digest, removes, counted, ...surplus] = fields;
    if (
      key == null ||
      properties == null ||
      removes == null ||
      counted == null ||
      company === undefined ||
      surplus.length > 0
    ) {
      throw new Error(`not six fields: ${JSON.stringify(fields).slice(0, 1000)}`);
    }
    const flags = (removes === 't' ? 1 : 0) | (counted === 't' ? 0 : 2);
    return { key, properties: JSON.parse(properties), company, flags };
  });
}

/** Decodes a field: `\N` is null, and a backslash starts an escape. */
function readField(field: string): string | null {
  if (field === '\\N') return null;
  return field.replace(/\\(.)/gs, (_, escaped: string) => escapes[escaped] ?? escaped);
}
