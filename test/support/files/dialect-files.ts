import fc from 'fast-check';
import type { SourceOptions } from '../../../src/domain/source.ts';

/** A table written as a file in some dialect, and the users that a load of the file must store. */
export interface DialectFile {
  readonly bytes: Buffer;
  /** Unencoded text of the file, for failure messages. */
  readonly text: string;
  /** Load options of a caller who knows the dialect of the file. */
  readonly source: SourceOptions;
  /** The `map` option for the id column. Empty if the header already names the column `user_id`. */
  readonly map: Readonly<Record<string, string>>;
  /** Expected properties of each user, by id. */
  readonly users: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A string, or the mark that represents a missing value. */
type Cell = string | { readonly mark: string };

interface Dialect {
  readonly delimiter: string;
  readonly quote: string;
  readonly escape: string;
  readonly quoting: 'needed' | 'all';
  readonly terminator: string;
  readonly encoding: Encoding;
  readonly hasBom: boolean;
  readonly header: 'first' | 'two' | 'none';
  readonly preamble: readonly string[];
  readonly preambleOption: 'skipRows' | 'header';
  readonly hasSeparatorLine: boolean;
  readonly comment: string;
  readonly footer: readonly string[];
  readonly nulls: readonly string[];
  readonly ragged: 'refuse' | 'pad';
  readonly endsInLine: boolean;
  readonly withBackslashes: boolean;
}

interface Table {
  /** Names of all columns except the id column. An empty string is a column without a name. */
  readonly names: readonly string[];
  readonly idColumn: number;
  readonly rows: readonly {
    readonly id: string;
    readonly cells: readonly Cell[];
    readonly surplus: number;
  }[];
  /** Lines that are not records, each with the index of the row that it precedes. */
  readonly interruptions: readonly { readonly before: number; readonly text: string }[];
}

const encodings = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'iso-8859-15', 'koi8-r'] as const;
type Encoding = (typeof encodings)[number];

/** Strings that have a meaning in some dialect, or that some encoding cannot represent. */
const pieces = 'a b 1 -5 ä é Ω ж € 😀 . = N NULL \\N n/a # // , ; | ^ ~ : " \' \\ ¦'.split(' ');
const spaces = [' ', '\t', '\n', '\r', '\r\n'];

function cellText({ withBackslashes }: Dialect): fc.Arbitrary<string> {
  const allowed = pieces.filter((piece) => withBackslashes || !piece.includes('\\'));
  return fc.array(fc.constantFrom(...allowed, ...spaces), { maxLength: 5 }).map((parts) => parts.join(''));
}

const single = fc.constantFrom(',', ',', ';', ';', '\t', '|', '^', '~', ' ', ':');
const delimiter = fc.oneof(
  { weight: 4, arbitrary: single },
  { weight: 1, arbitrary: fc.constantFrom('||', '::', ', ', '¦', 'blanks') },
);

const anyDialect: fc.Arbitrary<Dialect> = fc.record({
  delimiter,
  quote: fc.constantFrom('"', '"', '"', "'", ''),
  escape: fc.constantFrom('quote', 'quote', '\\', ''),
  quoting: fc.constantFrom('needed', 'needed', 'all'),
  terminator: fc.constantFrom('\n', '\r\n', '\r'),
  encoding: fc.constantFrom(...encodings),
  hasBom: fc.boolean(),
  header: fc.constantFrom('first', 'first', 'two', 'none'),
  preamble: fc.oneof(
    fc.constant([]),
    fc.array(fc.constantFrom('Users of 2026', 'Filter: all', 'x', '- - -'), { minLength: 1, maxLength: 3 }),
  ),
  preambleOption: fc.constantFrom('skipRows', 'header'),
  hasSeparatorLine: fc.boolean(),
  comment: fc.constantFrom('', '', '#', '//'),
  footer: fc.oneof(fc.constant([]), fc.constant(['Total']), fc.constant(['end of file', 'Total'])),
  nulls: fc.oneof(fc.constant([]), fc.subarray(['NULL', '\\N', 'n/a'])),
  ragged: fc.constantFrom('refuse', 'pad'),
  endsInLine: fc.boolean(),
  withBackslashes: fc.constant(true),
});

/**
 * Dialects of files that are loaded without options. A reader either recognises the dialect or
 * refuses the file as ambiguous. Null marks, comments and footers are excluded, because a reader
 * without options takes them for values.
 */
const tellingDialect: fc.Arbitrary<Dialect> = anyDialect.map((dialect) => ({
  ...dialect,
  comment: '',
  footer: [],
  nulls: [],
  // A reader can recognise the quote character only from a quoted cell, and the escape character
  // only from a backslash before a quote.
  quote: dialect.quote === '' ? '"' : dialect.quote,
  quoting: dialect.quote === "'" ? 'all' : dialect.quoting,
  withBackslashes: dialect.escape !== '\\',
  // A delimiter of two equal characters looks like two delimiters with an empty cell between them.
  delimiter: dialect.delimiter === '||' || dialect.delimiter === '::' ? ';' : dialect.delimiter,
  // The bytes of ISO 8859-15 and KOI8-R are also letters in Windows-1252, so a reader cannot
  // distinguish these encodings.
  encoding: dialect.encoding === 'iso-8859-15' || dialect.encoding === 'koi8-r' ? 'utf-8' : dialect.encoding,
}));

const name = fc.constantFrom(
  'plan',
  'full name',
  'größe',
  'a,b',
  'c;d',
  'say "x"',
  'e|f',
  'it’s',
  'note',
  '',
  '',
);

function tableIn(dialect: Dialect): fc.Arbitrary<Table> {
  const { nulls, comment } = dialect;
  const text = cellText(dialect);
  const value: fc.Arbitrary<Cell> = text;
  const cell =
    nulls.length === 0
      ? value
      : fc.oneof(
          { weight: 4, arbitrary: value },
          fc.constantFrom(...nulls).map((mark): Cell => ({ mark })),
        );
  return fc.array(name, { minLength: 1, maxLength: 4 }).chain((names) =>
    fc.record({
      names: fc.constant(names),
      idColumn: fc.nat({ max: names.length }),
      rows: fc
        .array(
          fc.record({
            tail: fc.oneof(fc.constant(''), text),
            cells: fc.tuple(...names.map(() => cell)),
            surplus: fc.constantFrom(0, 0, 0, 1, 2),
          }),
          { minLength: 1, maxLength: 12 },
        )
        .map((rows) => rows.map(({ tail, ...row }, index) => ({ ...row, id: `u${index}.${tail}` }))),
      interruptions: fc.array(
        fc.record({
          before: fc.nat({ max: 12 }),
          text: comment === '' ? fc.constant('') : fc.constantFrom('', `${comment} it's "odd`, comment),
        }),
        { maxLength: 2 },
      ),
    }),
  );
}

export const anyFile: fc.Arbitrary<DialectFile> = filesIn(anyDialect);
export const tellingFile: fc.Arbitrary<DialectFile> = filesIn(tellingDialect);

function filesIn(dialects: fc.Arbitrary<Dialect>): fc.Arbitrary<DialectFile> {
  return dialects
    .map(possible)
    .chain((dialect) => tableIn(dialect).map((table) => new DialectWriter(dialect).write(table)));
}

function possible(dialect: Dialect): Dialect {
  const marks = dialect.escape === 'quote' ? dialect.quote : dialect.escape;
  const isSingle = dialect.delimiter.length === 1 && dialect.delimiter < '\x80';
  return {
    ...dialect,
    escape: dialect.quote === '' ? '' : marks,
    delimiter: encodable(dialect.delimiter, dialect.encoding) === dialect.delimiter ? dialect.delimiter : ';',
    hasSeparatorLine:
      dialect.hasSeparatorLine && isSingle && dialect.preamble.length === 0 && dialect.header === 'first',
    // A file without a header has no footer, because lines that are not records must not outnumber
    // the records.
    footer: dialect.header === 'none' ? [] : dialect.footer,
    hasBom: dialect.hasBom && dialect.encoding.startsWith('utf'),
  };
}

class DialectWriter {
  readonly #dialect: Dialect;
  readonly #between: string;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
    this.#between = dialect.delimiter === 'blanks' ? '   ' : dialect.delimiter;
  }

  write(table: Table): DialectFile {
    const { terminator, preamble, hasSeparatorLine, footer, endsInLine, encoding, hasBom } = this.#dialect;
    const names = distinct(table.names.map((each) => this.#possible(encodable(each, encoding))));
    const rows = table.rows.map(({ id, cells, surplus }) => ({
      id: this.#possible(encodable(id, encoding)),
      cells: cells.map((cell) =>
        typeof cell === 'string' ? this.#possible(encodable(cell, encoding)) : cell,
      ),
      surplus,
    }));
    const lines = rows.map(({ id, cells, surplus }) =>
      this.#record(cells.toSpliced(table.idColumn, 0, id), surplus),
    );
    const interrupted = lines.flatMap((line, index) => [
      ...table.interruptions.filter(({ before }) => before === index).map(({ text }) => text),
      line,
    ]);
    const all = [
      ...(hasSeparatorLine ? [`sep=${this.#between}`] : []),
      ...preamble,
      ...this.#header(names, table.idColumn),
      ...interrupted,
      ...footer.map((text) => this.#possible(text)),
    ];
    const text = all.join(terminator) + (endsInLine ? terminator : '');
    return {
      bytes: encode(hasBom ? `\ufeff${text}` : text, encoding),
      text,
      source: this.#options(),
      map: this.#map(table.idColumn),
      users: this.#users(names, table.idColumn, rows),
    };
  }

  #record(cells: readonly Cell[], surplus: number): string {
    const { ragged, delimiter: between, header } = this.#dialect;
    // Surplus cells are added, except in two cases. If the delimiter is a blank, spaces at the end
    // of a line are not delimiters. If there is no header, the records determine the number of
    // columns.
    const added = between === 'blanks' || between === ' ' || header === 'none' ? 0 : surplus;
    const last = cells.findLastIndex((cell) => cell !== '') + 1;
    const present =
      ragged === 'pad' && header !== 'none' && surplus === 1
        ? cells.slice(0, last)
        : [...cells, ...Array(added).fill('')];
    return present.map((cell, at) => this.#written(cell as Cell, at === 0)).join(this.#between);
  }

  #written(cell: Cell, isFirst: boolean): string {
    if (typeof cell !== 'string') return cell.mark;
    const { quote, escape: mark, quoting } = this.#dialect;
    if (quote === '' || (quoting === 'needed' && !this.#needsQuotes(cell, isFirst))) return cell;
    const inside = mark === '\\' ? cell.replaceAll('\\', '\\\\') : cell;
    return quote + inside.replaceAll(quote, mark + quote) + quote;
  }

  #needsQuotes(cell: string, isFirst: boolean): boolean {
    const { quote, escape: mark, comment, nulls, delimiter: between } = this.#dialect;
    if (/[\r\n]/.test(cell) || nulls.includes(cell)) return true;
    if (isFirst && comment !== '' && cell.startsWith(comment)) return true;
    const isBlank = between === 'blanks' || between === ' ';
    if (isBlank && (cell === '' || /[ \t]/.test(cell))) return true;
    // If a cell ends with a character of a multi-character delimiter, a reader would find the
    // delimiter one character too early. A cell that contains such a character is therefore quoted.
    if (!isBlank && [...between].some((character) => cell.includes(character))) return true;
    return (quote !== '' && cell.includes(quote)) || (mark === '\\' && cell.includes('\\'));
  }

  /** Returns the value with `x` in place of the characters that the dialect cannot write. */
  #possible(value: string): string {
    const { quote, escape: mark } = this.#dialect;
    if (quote !== '') return mark === '' ? value.replaceAll(quote, 'x') : value;
    const without = [...value]
      .map((character) => (this.#needsQuotes(character, false) ? 'x' : character))
      .join('');
    return this.#needsQuotes(without, true) ? `x${without}` : without;
  }

  #header(names: readonly string[], idColumn: number): string[] {
    const { header } = this.#dialect;
    if (header === 'none') return [];
    if (header === 'first') return [this.#record(names.toSpliced(idColumn, 0, 'user_id'), 0)];
    const groups = [...names.map(() => 'g')].toSpliced(idColumn, 0, 'user');
    return [this.#record(groups, 0), this.#record(names.toSpliced(idColumn, 0, 'id'), 0)];
  }

  #map(idColumn: number): Record<string, string> {
    const { header } = this.#dialect;
    if (header === 'first') return {};
    return header === 'none' ? { [String(idColumn + 1)]: 'user_id' } : { 'user id': 'user_id' };
  }

  #options(): SourceOptions {
    const {
      delimiter: between,
      quote,
      escape: mark,
      encoding,
      header,
      preamble,
      comment,
      footer,
      nulls,
      ragged,
    } = this.#dialect;
    const option = preamble.length > 0 && header !== 'none' ? this.#dialect.preambleOption : 'skipRows';
    return {
      encoding,
      delimiter: between,
      quote,
      escape: mark,
      ...(header === 'none' ? { header: 'none' as const } : {}),
      ...(header === 'two' ? { headerRows: 2 } : {}),
      ...(header !== 'none' && option === 'header' ? { header: preamble.length + 1 } : {}),
      ...(header !== 'none' && option === 'skipRows' ? { header: 1 } : {}),
      ...(option === 'skipRows' && preamble.length > 0 ? { skipRows: preamble.length } : {}),
      ...(footer.length > 0 ? { skipFooter: footer.length } : {}),
      ...(comment === '' ? {} : { comment }),
      ...(nulls.length === 0 ? {} : { nulls }),
      ragged,
    };
  }

  #users(
    names: readonly string[],
    idColumn: number,
    rows: readonly { readonly id: string; readonly cells: readonly Cell[] }[],
  ): Record<string, Record<string, string>> {
    const columns = this.#columns(names, idColumn);
    const users = rows.map(({ id, cells }): [string, Record<string, string>] => {
      const pairs = cells.map((cell, index): [string, Cell] => [columns[index] ?? '', cell]);
      return [id, Object.fromEntries(pairs.filter((pair): pair is [string, string] => isValue(pair[1])))];
    });
    return Object.fromEntries(users);
  }

  /**
   * Returns the column names that the load uses. A column without a name is named after its
   * position, such as `column_2`.
   */
  #columns(names: readonly string[], idColumn: number): string[] {
    const { header } = this.#dialect;
    return names.map((name, index) => {
      const position = index < idColumn ? index + 1 : index + 2;
      const joined = header === 'two' ? `g ${name}`.trim() : name;
      return header === 'none' || joined === '' ? `column_${position}` : joined;
    });
  }
}

/**
 * Makes all names distinct, because a load refuses equal names. This includes empty names, because
 * two empty names below the same group heading would be equal.
 */
function distinct(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((name) => {
    let unique = name;
    while (used.has(unique.trim())) unique += 'x';
    used.add(unique.trim());
    return unique;
  });
}

function isValue(cell: Cell): boolean {
  return typeof cell === 'string' && cell !== '';
}

const codePages = new Map<string, ReadonlyMap<string, number>>(
  encodings
    .filter((encoding) => !encoding.startsWith('utf'))
    .map((encoding) => {
      const decoder = new TextDecoder(encoding);
      const bytes = Array.from({ length: 256 }, (_, byte): [string, number] => [
        decoder.decode(Uint8Array.of(byte)),
        byte,
      ]);
      return [encoding, new Map(bytes)];
    }),
);

/** Replaces each character that the encoding lacks with `x`. */
function encodable(text: string, encoding: Encoding): string {
  const page = codePages.get(encoding);
  return page === undefined
    ? text
    : [...text].map((character) => (page.has(character) ? character : 'x')).join('');
}

function encode(text: string, encoding: Encoding): Buffer {
  if (encoding === 'utf-8') return Buffer.from(text);
  if (encoding === 'utf-16le') return Buffer.from(text, 'utf16le');
  if (encoding === 'utf-16be') return Buffer.from(text, 'utf16le').swap16();
  const page = codePages.get(encoding);
  return Buffer.from([...text].map((character) => page?.get(character) ?? 0x78));
}
