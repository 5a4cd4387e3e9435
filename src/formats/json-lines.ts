/** How the records of an NDJSON file are kept apart, where that is not one in each line. */
export interface LineLayout {
  /** `cr`: lines end with CR only; `rs`: a U+001E stands before each record, as RFC 7464 has it. */
  readonly ends: 'lf' | 'cr' | 'rs';
  /** A comma ends each line. */
  readonly commas: boolean;
}

export const plainLines: LineLayout = { ends: 'lf', commas: false };

export function isPlainLines({ ends, commas }: LineLayout): boolean {
  return ends === 'lf' && !commas;
}

const [LF, CR, SPACE, TAB, RS, COMMA] = [10, 13, 32, 9, 0x1e, 44];

/** What may stand between a comma and the end of its line. */
const MAX_BLANKS_AFTER_COMMA = 1_024;

/**
 * The same text as plain NDJSON. Bytes are exchanged for others and never moved, so positions are those of the source, and a
 * record that is no JSON stays one: a line feed within an RFC 7464 record becomes a carriage return, which JSON takes between
 * tokens and refuses in strings, as it does the line feed; a comma at a line's end becomes a blank.
 */
export async function* plainLinesOf(
  source: AsyncIterable<Buffer>,
  layout: LineLayout,
): AsyncGenerator<Buffer> {
  const separators = layout.ends === 'rs' ? new Separators() : null;
  const commas = layout.commas ? new Commas() : null;
  for await (const bytes of source) {
    // A copy: the bytes belong to somebody else.
    const own = Buffer.from(bytes);
    if (layout.ends === 'cr') exchange(own, CR, LF);
    separators?.exchange(own);
    const text = commas === null ? own : commas.blank(own);
    if (text.length > 0) yield text;
  }
  if (commas !== null && commas.held.length > 0) yield commas.end();
}

function exchange(bytes: Buffer, from: number, to: number): void {
  for (let at = bytes.indexOf(from); at !== -1; at = bytes.indexOf(from, at + 1)) bytes[at] = to;
}

class Separators {
  #isFirst = true;

  /** The first stands before a record and ends none. */
  exchange(bytes: Buffer): void {
    exchange(bytes, LF, CR);
    const first = this.#isFirst ? bytes.indexOf(RS) : -1;
    if (first !== -1) {
      bytes[first] = SPACE;
      this.#isFirst = false;
    }
    exchange(bytes, RS, LF);
  }
}

class Commas {
  /** The end of what came so far: a comma that may yet turn out to end its line. */
  held: Buffer = Buffer.alloc(0);

  /** What can be said already, commas at line ends made blanks. */
  blank(added: Buffer): Buffer {
    const bytes = this.held.length === 0 ? added : Buffer.concat([this.held, added]);
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, end + 1)) {
      const at = commaBefore(bytes, end);
      if (at !== -1) bytes[at] = SPACE;
    }
    const open = commaBefore(bytes, bytes.length);
    const whole = open === -1 ? bytes.length : open;
    this.held = Buffer.from(bytes.subarray(whole));
    return bytes.subarray(0, whole);
  }

  /** The last line may end with the file. */
  end(): Buffer {
    this.held[0] = SPACE;
    return this.held;
  }
}

/** Where a comma stands that only blanks follow before `end`; -1 if none does. */
function commaBefore(bytes: Buffer, end: number): number {
  const least = Math.max(0, end - 1 - MAX_BLANKS_AFTER_COMMA);
  let at = end - 1;
  while (at >= least && (bytes[at] === SPACE || bytes[at] === TAB || bytes[at] === CR)) at--;
  return at >= least && bytes[at] === COMMA ? at : -1;
}
