/** One line of what COPY is given, read back as PostgreSQL reads it. */
export interface CopiedRow {
  readonly key: string;
  /** As jsonb keeps it: of repeated names the last. */
  readonly properties: Record<string, unknown>;
  readonly company: string | null;
  readonly flags: number;
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** The fields of every line. */
export function copiedFields(text: Buffer): (string | null)[][] {
  const lines = text.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new Error('the last line is not ended');
  return lines.map((line) => line.split('\t').map(readField));
}

/** COPY's text format, per its documentation: \N is null, backslash escapes, anything else stands for itself. */
export function readCopyText(text: Buffer): CopiedRow[] {
  const lines = text.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new Error('the last line is not ended');
  return lines.map((line) => {
    const [key, properties, company, _digest, removes, counted, ...more] = line.split('\t').map(readField);
    if (
      key == null ||
      properties == null ||
      removes == null ||
      counted == null ||
      company === undefined ||
      more.length > 0
    ) {
      throw new Error(`not six fields: ${JSON.stringify(line.slice(0, 1000))}`);
    }
    const flags = (removes === 't' ? 1 : 0) | (counted === 't' ? 0 : 2);
    return { key, properties: JSON.parse(properties), company, flags };
  });
}

function readField(field: string): string | null {
  if (field === '\\N') return null;
  return field.replace(/\\(.)/gs, (_, escaped: string) => escapes[escaped] ?? escaped);
}
